// The checks, in the order in which a failure is cheapest to learn of.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';
import { testStep } from './test-step.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

const check = (name, args) => ({ name, args, count: (code) => (code === 0 ? [1, 0] : [0, 1]) });

/** A step is known by the first of its projects. */
const tests = (name, projects, ...more) =>
  testStep(name, projects[0], [...projects.flatMap((project) => ['--project', project]), ...more]);

/** Written by the tests themselves when no browser runs here: then there is nothing to fail. */
const NO_BROWSER = join(CACHE_DIR, 'no-browser.txt');

function browserTests() {
  const step = tests('browser tests', ['browser']);
  const reason = () => (existsSync(NO_BROWSER) ? readFileSync(NO_BROWSER, 'utf8').trim() : '');
  return {
    ...step,
    before: () => {
      step.before();
      rmSync(NO_BROWSER, { force: true });
    },
    count: (code) => (code === 0 && reason() !== '' ? [0, 0] : step.count(code)),
    notes: () => [reason(), ...step.notes()].filter(Boolean),
  };
}

/** At the same time: each of them waits for the disk, and uses one core for much of its time. */
const STATIC = [
  check('types', tool('typescript/bin/tsc', '-b')),
  check('lint', tool('oxlint/bin/oxlint')),
  check('format', tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
];

/** On two cores: while some wait for a database, a timer or a process that starts, a third has what they leave. */
const THREE = '--maxWorkers=3';

export const STEPS = {
  fast: [STATIC, [tests('unit tests', ['unit'])]],
  all: [
    STATIC,
    // Those that wait leave the processor to the others.
    [
      [tests('unit tests', ['unit', 'slow'], THREE), tests('database tests', ['database'], THREE)],
      tests('waiting tests', ['waiting']),
    ],
    [tests('system tests', ['system'], THREE)],
    [browserTests()],
  ],
};
