// The checks, in the order in which a failure is cheapest to learn of.
import { join } from 'node:path';
import { ROOT } from './paths.mjs';
import { testStep } from './test-step.mjs';

const tool = (path, ...args) => [join(ROOT, 'node_modules', path), ...args];

const check = (name, args) => ({ name, args, count: (code) => (code === 0 ? [1, 0] : [0, 1]) });

const tests = (name, project, ...more) => testStep(name, project, ['--project', project, ...more]);

/** Whole sessions over many sockets, and child processes: seconds each. `npm test` runs them; `npm run verify` has a minute. */
const SLOW = [
  'packages/mux/src/mux-session.test.ts',
  'packages/mux/src/byte-end.conformance.test.ts',
  'packages/runtime/src/logger/standard-output.test.ts',
  'packages/client/src/resume-state.test.ts',
  'packages/testkit/src/spawn-program.test.ts',
];

/** Half a minute each, in which next to nothing runs: time limits that are waited for in earnest. */
const WAITING = [
  'tests/system/resume.test.ts',
  'tests/system/refusals.test.ts',
  'tests/system/silent-link.test.ts',
  'tests/chaos/rough-network.test.ts',
  'tests/conformance/load-balancing/server-sent-events.test.ts',
  'tests/conformance/load-balancing/limits.test.ts',
];

/** At the same time: each of them waits for the disk, and uses one core for much of its time. */
const STATIC = [
  check('types', tool('typescript/bin/tsc', '-b')),
  check('lint', tool('oxlint/bin/oxlint')),
  check('format', tool('@biomejs/biome/bin/biome', 'check', '--colors=off', '.')),
  check('import rules', [join(ROOT, 'scripts/check-imports.mjs')]),
  check('unused code', tool('knip/bin/knip.js', '--no-progress', '--no-config-hints')),
];

export const STEPS = {
  fast: [STATIC, [tests('unit tests', 'unit', ...SLOW.map((file) => `--exclude=${file}`))]],
  all: [
    STATIC,
    [tests('unit tests', 'unit'), testStep('waiting tests', 'waiting', ['--project', 'system', ...WAITING])],
    [tests('database tests', 'database')],
    // They wait for processes that start; a third one has what the others leave.
    [tests('system tests', 'system', '--maxWorkers=3', ...WAITING.map((file) => `--exclude=${file}`))],
  ],
};
