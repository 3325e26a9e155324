// An edge that was killed, and clients that do not come back: how long it waits for them.
import { eventually, FastClock } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askForAll, endpointsOf, startClients, startEdgeWithStranger } from '../comeback.fixture.ts';
import { itWith } from '../in-process.fixture.ts';

const RETURN_WINDOW_MS = 30_000;
/** 30 s pass in two. */
const clock = new FastClock(15);

const it = itWith({ clock });

it('names and ports of an edge that was killed are free for all 30 s after its return, and not earlier', async ({
  harness,
}) => {
  const stack = await startEdgeWithStranger(harness);
  const programs = await startClients(harness, stack);
  const endpoints = await endpointsOf(stack);
  await stack.kill();
  await Promise.all(programs.map((program) => program.kill()));
  const startedAt = clock.monotonic();
  await stack.start();
  expect(await askForAll(stack, endpoints)).not.toContain('opened');
  await eventually(async () => expect(new Set(await askForAll(stack, endpoints))).toEqual(new Set(['opened'])), {
    timeoutMs: 30_000,
    intervalMs: 100,
  });
  expect(clock.monotonic() - startedAt).toBeGreaterThan(RETURN_WINDOW_MS - 500);
});
