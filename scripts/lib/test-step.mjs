// A step that runs vitest. Counts the results and reports flaky tests. A failed test is retried once.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE_DIR, ROOT } from './paths.mjs';

const REPORTER = fileURLToPath(new URL('unsteady-reporter.mjs', import.meta.url));

/** List of flaky tests, with the reasons. A retry of a listed test is tolerated. */
const LIST = join(ROOT, 'tests/unsteady.json');

/**
 * Makes a step that runs vitest. `key` names the step's files in the cache folder. The options are `budgetSeconds`, `command` (a
 * different Node.js), `env`, and `unsteadyList` (a different list than the repository's).
 */
export function testStep(name, key, args, { budgetSeconds, command, env = {}, unsteadyList = LIST } = {}) {
  const report = join(CACHE_DIR, `${key}-tests.json`);
  const unsteadyFile = join(CACHE_DIR, `${key}-tests.unsteady.json`);
  const unsteady = () => judge(readJson(unsteadyFile) ?? [], readJson(unsteadyList) ?? {});
  return {
    name,
    budgetSeconds,
    command,
    args: [
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--retry=1',
      '--reporter=default',
      `--reporter=${REPORTER}`,
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...args,
    ],
    env: { ...env, UNSTEADY_FILE: unsteadyFile },
    before: () => [report, unsteadyFile].forEach((file) => rmSync(file, { force: true })),
    count: (code) => {
      const [passed, failed, skipped] = countTests(readJson(report), code);
      const refused = unsteady().filter(({ isFailure }) => isFailure).length;
      return [passed - refused, failed + refused, skipped];
    },
    notes: () => unsteady().map(({ line }) => line),
  };
}

/**
 * Number of retries outside of the list that a CI step tolerates, because a shared machine can stall for seconds. With one more retry,
 * every retry counts as a failure.
 */
const SECOND_TRIES_BORNE = 2;

/** Judges retried tests. On a developer's machine, retries are only reported; in CI, TUNNEL_STEADY_REQUIRED is set. */
function judge(found, list) {
  const unknown = found.filter(({ test }) => !list[test]).length;
  const isFailure = process.env.TUNNEL_STEADY_REQUIRED === '1' && unknown > SECOND_TRIES_BORNE;
  return found.map(({ test, said }) => {
    const reason = list[test];
    if (reason) return { line: `unsteady, known (${reason}): ${test}: ${said}`, isFailure: false };
    return { line: `unsteady${isFailure ? ', FAILED' : ''}: ${test}: ${said}`, isFailure };
  });
}

/** Returns [passed, failed, skipped]. A file that cannot be loaded, or a run without tests, counts as one failure. */
function countTests(report, code) {
  if (!report) return [0, 1, 0];
  const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped } = report;
  const silentFailure = failed === 0 && (code !== 0 || passed === 0);
  return [passed, silentFailure ? 1 : failed, skipped];
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
