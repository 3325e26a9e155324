// Test of two tenants with 40 visits a second each, while edges, a client and a platform are killed. tests/tools/platform/fault-run.mjs
// is the long version, which also checks the times on a quiet machine.
import { expect, it } from 'vitest';
import { FaultRun } from './fault-run.fixture.ts';

/**
 * Maximum time without service in milliseconds. The script measures the promised 1.5 s, 2.5 s and 10 s; two busy cores need longer to
 * start a process.
 */
const BUSY_MS = 30_000;

it('visitors of two tenants are served again after each kill, and each request is billed once', async () => {
  const run = await FaultRun.open();
  try {
    const { refusedMs, servedMs } = await run.killEdge();
    expect(refusedMs).toBeLessThan(BUSY_MS);
    expect(servedMs).toBeLessThan(BUSY_MS);
    await run.kill('client', 0.9);
    await run.keysKept();
    // Even without a response from the platform, the edge accepts clients, because the known keys are stored on disk.
    const goOn = run.hangPlatform();
    try {
      await run.killEdge();
    } finally {
      goOn();
    }
    await run.kill('platform');
    await run.serves();
    for (const { gapMs, billed, least, most } of await run.results()) {
      expect(gapMs).toBeLessThan(BUSY_MS);
      expect(billed).toBeGreaterThanOrEqual(least);
      expect(billed).toBeLessThanOrEqual(most);
    }
  } finally {
    await run.close();
  }
}, 180_000);
