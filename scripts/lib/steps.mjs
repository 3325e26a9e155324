// The steps of the checks, cheapest failures first. The budget of each step is its time on two idle cores.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';
import { testStep } from './test-step.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

/** Makes a step with a single result: passed or failed. */
export const check = (name, budgetSeconds, args) => ({
  name,
  budgetSeconds,
  args,
  count: (code) => (code === 0 ? [1, 0] : [0, 1]),
  notes: (output) => output.split('\n').filter((line) => line.startsWith('note: ')),
});

/** Makes a step for the tests of some projects. The name of the first project identifies the step. */
const tests = (name, budgetSeconds, projects, ...more) =>
  testStep(name, projects[0], [...ofProjects(projects), ...more], { budgetSeconds });

const ofProjects = (projects) => projects.flatMap((project) => ['--project', project]);

/** File written by the browser tests if no browser is available on this machine. The step then does not fail. */
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

/**
 * The compiler and the linter are Go programs. With fewer garbage collections, each uses a fifth less processor time, and two gigabytes
 * of memory.
 */
const RARE_COLLECTIONS = { GOGC: '400' };
/** The linter repeats much of the type checking on every core that it may use. On one core, the types are checked only once. */
const ONE_CORE = { ...RARE_COLLECTIONS, GOMAXPROCS: '1' };

/** Static checks without lint. Together, they take about as long as lint. */
const STATIC = [
  // A single checker, because every additional checker repeats most of the work.
  { ...check('types', 25, tool('typescript/bin/tsc', '-b', '--checkers', '1')), env: RARE_COLLECTIONS },
  check('format', 10, tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', 10, [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', 20, tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
];

/** Lint of some files. Default: all files. */
const lintStep = (files = []) => ({ ...check('lint', 55, tool('oxlint/bin/oxlint', ...files)), env: ONE_CORE });

/** Projects with unit tests and system tests that take several seconds per test. */
const SLOW = ['slow', 'slow-system'];

/** Number of workers for steps with other steps in parallel. Every additional worker would load all modules again. */
const TWO = '--maxWorkers=2';
/** Number of workers on two cores. While two tests wait for a database, a timer or a starting process, a third test uses the processor. */
const THREE = '--maxWorkers=3';

/** Budget in seconds of `npm run verify` and of every step in it, because the steps run in parallel. */
const FAST_SECONDS = 60;

/** Steps of `npm run verify`, with the tests and files to lint chosen by chooseChecks(). */
export function fastRun({ tests: chosen, lint }) {
  const lints = lint?.length === 0 ? [] : [lintStep(lint)];
  const steps = [...STATIC, ...lints, tests('unit tests', FAST_SECONDS, ['unit', 'repo'], ...(chosen ?? []))];
  const isAll = chosen === undefined || lint === undefined;
  const budgeted = steps.map((step) => ({ ...step, budgetSeconds: isAll ? undefined : FAST_SECONDS }));
  return { budgetSeconds: isAll ? undefined : FAST_SECONDS, groups: [budgeted] };
}

/**
 * Budget in seconds of unit tests that run in parallel with database and system tests. All cases of the randomized tests take longer than
 * a third of the cases.
 */
const UNIT_SECONDS = process.env.TUNNEL_RANDOM_TIMES === '1' ? 280 : 200;

/** Runs of `scripts/run-checks.mjs`: groups of steps, and the budget of a whole run. */
export const RUNS = {
  all: {
    budgetSeconds: 300,
    groups: [
      // Two lanes: while one lane waits for its database or for a starting program, the other lane uses the processor.
      [
        [...STATIC, tests('database tests', 110, ['database'], TWO), tests('system tests', 165, ['system'], THREE)],
        [
          lintStep(),
          browserTests('browser smoke tests', 60, 'smoke'),
          tests('unit tests', UNIT_SECONDS, ['unit', 'repo'], TWO),
        ],
      ],
    ],
  },
  // Slow tests mostly wait for databases, certificate authorities and starting programs, so more workers run in parallel.
  slow: { groups: [[tests('slow tests', 205, SLOW, '--maxWorkers=4')]] },
  browser: { groups: [[browserTests('browser tests', 160, 'browser')]] },
  load: { groups: [[tests('load tests', 185, ['load'], THREE)]] },
};

/** Database tests, with the slow tests of the schema. */
export const DATABASE_AND_SCHEMA = [...ofProjects(['database', 'slow-system']), '.db.test.ts', 'apps/platform/src/db/'];

/** A step that runs the database tests on a different PostgreSQL than the installed version. `env` selects the server. */
export function postgresStep(name, key, env) {
  return testStep(name, key, [...DATABASE_AND_SCHEMA, TWO], { budgetSeconds: 110, env });
}

/**
 * System tests without a platform or database. They test the data plane, and with it most of the code that a Node.js version could
 * affect.
 */
const DATA_PLANE = ['tests/system/data-plane/', 'tests/system/policy/', 'tests/chaos/', 'tests/http-differential/'];

/**
 * Test suites for other versions of Node.js, each with its budget, projects and test files. `more` contains environment variables for the
 * tests.
 */
const SUITES = {
  unit: { budgetSeconds: 130, projects: ['unit'], files: [] },
  slow: { budgetSeconds: 170, projects: SLOW, files: [] },
  database: { budgetSeconds: 90, projects: ['database'], files: [] },
  'data-plane': { budgetSeconds: 85, projects: ['system'], files: DATA_PLANE, more: { TEST_DATABASE_URL: 'none' } },
  system: { budgetSeconds: 150, projects: ['system', 'repo'], files: [] },
  load: { budgetSeconds: 210, projects: ['load'], files: [] },
};

export const SUITE_NAMES = Object.keys(SUITES);

/** Makes a step that runs a suite on a different version of Node.js than the current process. */
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
