// Tests with a harness whose servers and clients run inside the test's process, over real sockets: most tests of the product. An edge and a
// client can be killed (SIGKILL: connections break, files stay), a client can be frozen (SIGSTOP, SIGCONT). The few tests of what only a
// process shows (that it ends, its exit code after a second signal, what a kill leaves on disk, memory, the terminal) take the executables:
// system-test.fixture.ts, or `programs` at one call.
import { it as plainIt } from 'vitest';
import { Harness as AnyHarness, type HarnessOptions } from './harness.fixture.ts';

export class Harness extends AnyHarness {
  constructor(options: HarnessOptions = {}) {
    super({ programs: false, ...options });
  }
}

/**
 * Tests whose harness has these options, such as a clock: `const it = itWith({ clock })`. Not `it.override`: files of one worker share this
 * module, so it would change the tests of all files that come later.
 */
export const itWith = (options: HarnessOptions) =>
  plainIt.extend<{ harness: Harness }>({
    harness: async ({ task: _ }, use) => {
      const harness = new Harness(options);
      await use(harness);
      await harness.close();
    },
  });

/** Tests that get a harness of their own, so that they may run at the same time. */
export const it = itWith({});
