// Test of a killed edge with clients that do not return: the time until names and ports are free again.
import { eventually, FastClock } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askForAll, endpointsOf, startClients, startEdgeWithStranger } from '../comeback.fixture.ts';
import { itWith } from '../in-process.fixture.ts';

const RETURN_WINDOW_MS = 30_000;
/** Fast clock: 30 s pass in 2 s of real time. */
const clock = new FastClock(15);

const it = itWith({ clock });

it('names and ports of a killed edge become free 30 s after its return, and not earlier', async ({ harness }) => {
  const stack = await startEdgeWithStranger(harness);
  const programs = await startClients(harness, stack);
  const endpoints = await endpointsOf(stack);
  await stack.kill();
  await Promise.all(programs.map((program) => program.kill()));
  const startedAt = clock.monotonic();
  await stack.start();
  expect(await askForAll(stack, endpoints)).not.toContain('opened');
  const freeAfterMs = endpoints.map(async (endpoint) => {
    await eventually(async () => expect(await askForAll(stack, [endpoint])).toEqual(['opened']), { intervalMs: 100 });
    return clock.monotonic() - startedAt;
  });
  for (const ms of await Promise.all(freeAfterMs)) expect(ms).toBeGreaterThan(RETURN_WINDOW_MS - 500);
});
