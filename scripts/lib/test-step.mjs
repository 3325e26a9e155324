// A step that is a run of vitest: its count, and what of it was unsteady. A test that fails is tried once more.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE_DIR, ROOT } from './paths.mjs';

const REPORTER = fileURLToPath(new URL('unsteady-reporter.mjs', import.meta.url));

/** Tests that may need a second try, with the reason. */
const LIST = join(ROOT, 'tests/unsteady.json');

/**
 * `key` names its files in the cache folder. `more` may have `budgetSeconds`, `command`, another Node.js to run it with, `env`, and
 * `unsteadyList`, another file than the repository's.
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

/** Second tries that a step of CI may have beside those of the list: a shared machine can stand still for seconds. From one more on, each is a failure. */
const SECOND_TRIES_BORNE = 2;

/** On a developer's machine a second try is only reported. CI sets TUNNEL_STEADY_REQUIRED. */
function judge(found, list) {
  const unknown = found.filter(({ test }) => !list[test]).length;
  const isFailure = process.env.TUNNEL_STEADY_REQUIRED === '1' && unknown > SECOND_TRIES_BORNE;
  return found.map(({ test, said }) => {
    const reason = list[test];
    if (reason) return { line: `unsteady, known (${reason}): ${test}: ${said}`, isFailure: false };
    return { line: `unsteady${isFailure ? ', FAILED' : ''}: ${test}: ${said}`, isFailure };
  });
}

/** [passed, failed, skipped]. A file that does not load, or no test at all, counts as one failure. */
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
