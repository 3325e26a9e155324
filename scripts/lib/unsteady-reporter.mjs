// Vitest reporter that writes the tests that passed only after a retry to the file named by UNSTEADY_FILE.
import { writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

// vitest requires a reporter given by path to be the default export of its module.
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
