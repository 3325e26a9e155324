// A reporter of vitest's: writes the tests that passed only at a later try into the file that UNSTEADY_FILE names.
import { writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

// vitest takes a reporter by its path only as the default of its module.
export default class UnsteadyReporter {
  #found = [];

  onTestCaseResult(test) {
    if (!test.diagnostic()?.flaky) return;
    const [error] = test.result().errors ?? [];
    const [said] = stripVTControlCharacters(error?.message ?? 'no error was kept')
      .trim()
      .split('\n', 1);
    this.#found.push({ test: `${test.module.relativeModuleId} > ${test.fullName}`, said });
  }

  onTestRunEnd() {
    const file = process.env.UNSTEADY_FILE;
    if (file) writeFileSync(file, JSON.stringify(this.#found));
  }
}
