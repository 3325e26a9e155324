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

/** A test may give its own time: `it.scoped({ harnessOptions: { clock: new FastClock(30) } })`. */
export const it = plainIt.extend<{ harnessOptions: HarnessOptions; harness: Harness }>({
  harnessOptions: {},
  harness: async ({ harnessOptions }, use) => {
    const harness = new Harness(harnessOptions);
    await use(harness);
    await harness.close();
  },
});
