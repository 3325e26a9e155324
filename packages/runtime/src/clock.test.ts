import { expect, test } from 'vitest';
import { readOncePerTurn, systemClock } from './clock.ts';

test('the monotonic clock never goes back, and the wall clock is in milliseconds', () => {
  const first = systemClock.monotonic();
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});

test('a canceled timer never fires', async () => {
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

test('readOncePerTurn returns the same time within a turn, and a new time in the next', async () => {
  const now = readOncePerTurn(systemClock);
  const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const spin = (ms: number): void => {
    for (const until = performance.now() + ms; performance.now() < until; );
  };
  await nextTurn();
  const before = performance.now();
  const first = now();
  expect(first).toBeGreaterThanOrEqual(before);
  spin(5);
  await Promise.resolve();
  expect(now()).toBe(first);
  // Whichever phase of the event loop read the clock, the time is current again one turn later.
  for (const wait of [nextTurn, () => new Promise<void>((resolve) => setTimeout(resolve, 1))]) {
    const stale = now();
    spin(5);
    await wait();
    await nextTurn();
    expect(now()).toBeGreaterThanOrEqual(stale + 5);
    expect(performance.now() - now()).toBeLessThan(1000);
  }
});

test('readOncePerTurn reads a test clock on every call', () => {
  let time = 1;
  const now = readOncePerTurn({ ...systemClock, monotonic: () => time });
  expect(now()).toBe(1);
  time = 2;
  expect(now()).toBe(2);
});
