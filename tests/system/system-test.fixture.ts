// Tests with a harness that runs servers and clients as executables. All programs of a test have ended when the test ends.
import { it as plainIt } from 'vitest';
import { Harness } from './harness.fixture.ts';

export { Harness };

/** Runs each test with a separate harness, so that tests can run at the same time. */
export const it = plainIt.extend<{ harness: Harness }>({
  harness: async ({ task: _ }, use) => {
    const harness = new Harness();
    await use(harness);
    await harness.close();
  },
});
