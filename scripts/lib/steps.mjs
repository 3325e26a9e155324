// The checks, in the order in which a failure is cheapest to learn of.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { CACHE_DIR, ROOT } from './paths.mjs';
import { testStep } from './test-step.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

const check = (name, args) => ({ name, args, count: (code) => (code === 0 ? [1, 0] : [0, 1]) });

/** A step is known by the first of its projects. */
const tests = (name, projects, ...more) => testStep(name, projects[0], [...ofProjects(projects), ...more]);

const ofProjects = (projects) => projects.flatMap((project) => ['--project', project]);

/** Written by the tests themselves when no browser runs here: then there is nothing to fail. */
const NO_BROWSER = join(CACHE_DIR, 'no-browser.txt');

function browserTests() {
  const step = tests('browser tests', ['browser'], THREE);
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
      [tests('unit tests', ['unit', 'slow'], THREE), databaseStep('database tests', 'database')],
      tests('waiting tests', ['waiting']),
    ],
    [tests('system tests', ['system'], THREE)],
    [browserTests()],
  ],
  load: [[tests('load tests', ['load'])]],
};

/** Another server, or another Node.js, may be said in `more`: see testStep. */
export function databaseStep(name, key, more) {
  return testStep(name, key, [...ofProjects(['database']), THREE], more);
}

/** System tests that need no platform and no database: what carries bytes, and with it most of what Node.js could change. */
const DATA_PLANE = ['tests/system/data-plane/', 'tests/chaos/', 'tests/http-differential/'];

export const SUITES = ['unit', 'database', 'system', 'data-plane'];

/** Groups of steps: these suites on a Node.js that is not the one that runs this; whole or, for time, without what takes long. */
export function suiteSteps(suites, { path, version }, isWhole) {
  const more = { command: path, env: { PATH: `${dirname(path)}${delimiter}${process.env.PATH}` } };
  const on = (name, key, projects, ...args) =>
    testStep(`${name} on Node.js ${version}`, `${key}-${version}`, [...ofProjects(projects), ...args], more);
  const has = (suite) => suites.includes(suite);
  const files = has('system') ? [] : DATA_PLANE;
  const beside = [
    has('unit') && on('unit tests', 'unit', isWhole ? ['unit', 'slow'] : ['unit'], THREE),
    has('database') && databaseStep(`database tests on Node.js ${version}`, `database-${version}`, more),
  ].filter(Boolean);
  if (!has('system') && !has('data-plane')) return [[beside]];
  const system = on(
    has('system') ? 'system tests' : 'data plane tests',
    'system',
    isWhole ? ['system', 'load'] : ['system'],
    THREE,
    ...files,
  );
  // Those that wait take a minute by themselves: they run where something runs beside them.
  return beside.length === 0
    ? [[system]]
    : [[beside, on('waiting tests', 'waiting', ['waiting'], THREE, ...files)], [system]];
}
