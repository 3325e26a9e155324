// The checks, in the order in which a failure is cheapest to learn of.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

const check = (name, args) => ({ name, args, count: (code) => (code === 0 ? [1, 0] : [0, 1]) });

function tests(name, project) {
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

const FAST = [
  check('types', tool('typescript/bin/tsc', '-b')),
  check('lint', tool('oxlint/bin/oxlint')),
  check('format', tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
  tests('unit tests', 'unit'),
];

export const STEPS = { fast: FAST, all: [...FAST, tests('system tests', 'system')] };
