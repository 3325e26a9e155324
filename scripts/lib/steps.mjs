// The checks, in the order in which a failure is cheapest to learn of, each with its budget: its time on two quiet cores.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';
import { testStep } from './test-step.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

/** A step that passes or fails as a whole. */
export const check = (name, budgetSeconds, args) => ({
  name,
  budgetSeconds,
  args,
  count: (code) => (code === 0 ? [1, 0] : [0, 1]),
  notes: (output) => output.split('\n').filter((line) => line.startsWith('note: ')),
});

/** A step is known by the first of its projects. */
const tests = (name, budgetSeconds, projects, ...more) =>
  testStep(name, projects[0], [...ofProjects(projects), ...more], { budgetSeconds });

const ofProjects = (projects) => projects.flatMap((project) => ['--project', project]);

/** Written by the tests themselves when no browser runs here: then there is nothing to fail. */
const NO_BROWSER = join(CACHE_DIR, 'no-browser.txt');

function browserTests(name, budgetSeconds, project) {
  const step = tests(name, budgetSeconds, [project], THREE);
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

/** The compiler and the linter are Go programs. With rarer garbage collections they use a fifth less of the processor, and two gigabytes each. */
const RARE_COLLECTIONS = { GOGC: '400' };
/** The linter checks types once for each core it may use, with much of the work done twice: on one core it is done once. */
const ONE_CORE = { ...RARE_COLLECTIONS, GOMAXPROCS: '1' };

/** At the same time: each of them waits for the disk, and uses one core for much of its time. `linted` are the files to lint, all unless they are given. */
const staticSteps = (linted) => [
  // One checker: each one more would check again most of what the others have checked.
  { ...check('types', 40, tool('typescript/bin/tsc', '-b', '--checkers', '1')), env: RARE_COLLECTIONS },
  ...(linted?.length === 0
    ? []
    : [{ ...check('lint', 55, tool('oxlint/bin/oxlint', ...(linted ?? []))), env: ONE_CORE }]),
  check('format', 15, tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', 20, [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', 35, tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
];

/** Unit tests and system tests that take seconds each. */
const SLOW = ['slow', 'slow-system'];

/** Beside other steps that run at the same time: each worker more would load all modules once more. */
const TWO = '--maxWorkers=2';
/** On two cores: while some wait for a database, a timer or a process that starts, a third has what they leave. */
const THREE = '--maxWorkers=3';

/** Seconds for `npm run verify`, and so for each of its steps, which all run at the same time. */
const FAST_SECONDS = 60;

/** `npm run verify`: the tests and the files to lint are those of chooseChecks(). */
export function fastRun({ tests: chosen, lint }) {
  const steps = [...staticSteps(lint), tests('unit tests', FAST_SECONDS, ['unit', 'repo'], ...(chosen ?? []))];
  const isAll = chosen === undefined || lint === undefined;
  const budgeted = steps.map((step) => ({ ...step, budgetSeconds: isAll ? undefined : FAST_SECONDS }));
  return { budgetSeconds: isAll ? undefined : FAST_SECONDS, groups: [budgeted] };
}

/** Beside the database and system tests. With all cases of the random tests they take longer than with a third of them. */
const UNIT_SECONDS = process.env.TUNNEL_RANDOM_TIMES === '1' ? 280 : 180;

/** Runs of `scripts/run-checks.mjs`: groups of steps, and the budget of all. */
export const RUNS = {
  all: {
    budgetSeconds: 300,
    groups: [
      staticSteps(),
      // Two after two: while one waits for its database or a program that starts, the other has the processor.
      [
        [tests('unit tests', UNIT_SECONDS, ['unit', 'repo'], TWO), browserTests('browser smoke tests', 60, 'smoke')],
        [databaseStep('database tests', 'database'), tests('system tests', 165, ['system'], THREE)],
      ],
    ],
  },
  // Most of their time is waiting: for databases, authorities and programs that start.
  slow: { groups: [[tests('slow tests', 155, SLOW, '--maxWorkers=4')]] },
  browser: { groups: [[browserTests('browser tests', 160, 'browser')]] },
  load: { groups: [[tests('load tests', 185, ['load'], THREE)]] },
};

/** Another server, or another Node.js, may be said in `more`: see testStep. */
export function databaseStep(name, key, more) {
  return testStep(name, key, [...ofProjects(['database']), TWO], { budgetSeconds: 100, ...more });
}

/** System tests that need no platform and no database: what carries bytes, and with it most of what Node.js could change. */
const DATA_PLANE = ['tests/system/data-plane/', 'tests/chaos/', 'tests/http-differential/'];

/** The suites that run on other versions of Node.js, each with its budget, its projects and the files of it; `more` is set for its tests. */
const SUITES = {
  unit: { budgetSeconds: 130, projects: ['unit'], files: [] },
  slow: { budgetSeconds: 170, projects: SLOW, files: [] },
  database: { budgetSeconds: 90, projects: ['database'], files: [] },
  'data-plane': { budgetSeconds: 70, projects: ['system'], files: DATA_PLANE, more: { TEST_DATABASE_URL: 'none' } },
  system: { budgetSeconds: 150, projects: ['system', 'repo'], files: [] },
  load: { budgetSeconds: 210, projects: ['load'], files: [] },
};

export const SUITE_NAMES = Object.keys(SUITES);

/** The step that runs one suite on a Node.js that is not the one that runs this. */
export function suiteStep(suite, { path, version }) {
  const { budgetSeconds, projects, files, more } = SUITES[suite];
  const env = { ...more, PATH: `${dirname(path)}${delimiter}${process.env.PATH}` };
  const args = [...ofProjects(projects), TWO, ...files];
  return testStep(`${suite} tests on Node.js ${version}`, `${suite}-${version}`, args, {
    command: path,
    env,
    budgetSeconds,
  });
}
