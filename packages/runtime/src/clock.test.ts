import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test('the monotonic hand only moves forward, and the wall clock is in milliseconds', () => {
  const first = systemClock.monotonic();
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});

test('a cancelled timer never fires', async () => {
  const fired: string[] = [];
  systemClock.setTimeout(() => fired.push('cancelled'), 1).cancel();
  const ticks = systemClock.setInterval(() => fired.push('tick'), 1);
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 20));
  ticks.cancel();
  const ticksSeen = fired.length;
  await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, 20));
  expect(fired).toHaveLength(ticksSeen);
  expect(new Set(fired)).toEqual(new Set(['tick']));
});
