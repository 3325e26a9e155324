import { expect, it } from 'vitest';
import { RateWindow } from './rate-window.rules.ts';

const take = (window: RateWindow, key: string, now: number): boolean => {
  if (!window.hasRoom(key, now)) return false;
  window.record(key, now);
  return true;
};

it('no window of that length ever holds more, also one that begins in between', () => {
  const window = new RateWindow({ perWindow: 3, windowMs: 1000, keysMax: 10 });
  expect([0, 800, 900, 950, 999].map((now) => take(window, 'a', now))).toEqual([true, true, true, false, false]);
  // The first is over, the others are not: a window that starts anew would give three.
  expect([1000, 1001, 1799, 1800].map((now) => take(window, 'a', now))).toEqual([true, false, false, true]);
  expect(take(window, 'b', 1001)).toBe(true);
});

it('keeps what happened in the window, and no more keys than it may', () => {
  const window = new RateWindow({ perWindow: 1, windowMs: 1000, keysMax: 3 });
  for (const key of ['a', 'b', 'c', 'd']) take(window, key, 0);
  expect([window.size, window.hasRoom('a', 1), window.hasRoom('d', 1)]).toEqual([3, true, false]);
  take(window, 'e', 1000);
  expect(window.size).toBe(1);
});

it('whatever comes when, counted again from the times themselves', () => {
  let seed = 3;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const window = new RateWindow({ perWindow: 5, windowMs: 100, keysMax: 50 });
  const taken = new Map<string, number[]>();
  let now = 0;
  for (let step = 0; step < 5000; step += 1) {
    now += Math.floor(random() * 6);
    const key = `k${Math.floor(random() * 4)}`;
    const before = (taken.get(key) ?? []).filter((at) => now - at < 100);
    expect(window.hasRoom(key, now)).toBe(before.length < 5);
    if (before.length < 5) window.record(key, now);
    taken.set(key, before.length < 5 ? [...before, now] : before);
  }
});
