// Tests with a harness that runs servers and clients inside the test process, over real sockets. Most tests of the product use this file.
// An edge and a client can be killed (SIGKILL: connections break, files stay), and a client can be frozen (SIGSTOP, SIGCONT). Tests of
// properties of a real process (its end, its exit code after a second signal, the files after a kill, memory, the terminal) run the
// executables: with system-test.fixture.ts, or with `programs` for a single call.
import { it as plainIt } from 'vitest';
import { Harness as AnyHarness, type HarnessOptions } from './harness.fixture.ts';

export class Harness extends AnyHarness {
  constructor(options: HarnessOptions = {}) {
    super({ programs: false, ...options });
  }
}

/**
 * Returns `it` for tests with the given harness options, such as a clock: `const it = itWith({ clock })`. `it.override` would be wrong:
 * files of a worker share this module, so the override would change the tests of all later files.
 */
export const itWith = (options: HarnessOptions) =>
  plainIt.extend<{ harness: Harness }>({
    harness: async ({ task: _ }, use) => {
      const harness = new Harness(options);
      await use(harness);
      await harness.close();
    },
  });

/** Runs each test with a separate harness, so that tests can run at the same time. */
export const it = itWith({});
