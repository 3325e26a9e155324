// A step that is a run of vitest: its count, and what of it was unsteady. A test that fails is tried once more.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CACHE_DIR, ROOT } from './paths.mjs';

const REPORTER = fileURLToPath(new URL('unsteady-reporter.mjs', import.meta.url));

/** `key` names its files in the cache folder. */
export function testStep(name, key, args) {
  const report = join(CACHE_DIR, `${key}-tests.json`);
  const unsteady = join(CACHE_DIR, `${key}-tests.unsteady`);
  return {
    name,
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
    env: { UNSTEADY_FILE: unsteady },
    before: () => [report, unsteady].forEach((file) => rmSync(file, { force: true })),
    count: (code) => countTests(report, code),
    notes: () => linesOf(unsteady).map((line) => `unsteady: ${line}`),
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

function linesOf(file) {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}
