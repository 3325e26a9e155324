// The checks, in the order in which a failure is cheapest to learn of.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

const check = (name, args) => ({ name, args, count: (code) => (code === 0 ? [1, 0] : [0, 1]) });

function tests(name, project, ...more) {
  const report = join(CACHE_DIR, `${project}-tests.json`);
  return {
    name,
    args: tool(
      'vitest/vitest.mjs',
      'run',
      '--project',
      project,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...more,
    ),
    before: () => rmSync(report, { force: true }),
    count: (code) => countTests(report, code),
  };
}

/** [passed, failed, skipped]. A file that does not load, or no test at all, counts as one failure. */
function countTests(report, code) {
  let totals;
  try {
    totals = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return [0, 1, 0];
  }
  const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped } = totals;
  const silentFailure = failed === 0 && (code !== 0 || passed === 0);
  return [passed, silentFailure ? 1 : failed, skipped];
}

/** Written by the tests themselves when no browser runs here: then there is nothing to fail. */
const NO_BROWSER = join(CACHE_DIR, 'no-browser.txt');

function browserTests() {
  const step = tests('browser tests', 'browser');
  const reason = () => (existsSync(NO_BROWSER) ? readFileSync(NO_BROWSER, 'utf8').trim() : '');
  return {
    ...step,
    before: () => {
      step.before();
      rmSync(NO_BROWSER, { force: true });
    },
    count: (code) => (code === 0 && reason() !== '' ? [0, 0] : step.count(code)),
    note: reason,
  };
}

/** Whole sessions over many sockets, and child processes: seconds each. `npm test` runs them; `npm run verify` has a minute. */
const SLOW = [
  'packages/mux/src/mux-session.test.ts',
  'packages/mux/src/byte-end.conformance.test.ts',
  'packages/runtime/src/logger/standard-output.test.ts',
  'packages/client/src/resume-state.test.ts',
  'packages/testkit/src/spawn-program.test.ts',
];

const STATIC = [
  check('types', tool('typescript/bin/tsc', '-b')),
  check('lint', tool('oxlint/bin/oxlint')),
  check('format', tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
];

export const STEPS = {
  fast: [...STATIC, tests('unit tests', 'unit', ...SLOW.map((file) => `--exclude=${file}`))],
  all: [
    ...STATIC,
    tests('unit tests', 'unit'),
    tests('database tests', 'database'),
    tests('system tests', 'system'),
    browserTests(),
  ],
};
