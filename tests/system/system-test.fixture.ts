// Tests with a harness whose servers and clients are the executables: what one of them has running is gone when it is over.
import { it as plainIt } from 'vitest';
import { Harness } from './harness.fixture.ts';

export { Harness };

/** Tests that get a harness of their own, so that they may run at the same time. */
export const it = plainIt.extend<{ harness: Harness }>({
  harness: async ({ task: _ }, use) => {
    const harness = new Harness();
    await use(harness);
    await harness.close();
  },
});
