// Tests with a harness whose servers and clients run inside the test's process, over real sockets: most tests of the product. Those of
// signals that the kernel carries out, exit codes, files left by a kill, memory or the terminal take the executables: system-test.fixture.ts.
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
