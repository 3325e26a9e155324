import { expect, it } from 'vitest';
import { ByteWindow } from './byte-window.rules.ts';

const RULES = { bytesPerWindow: 100, windowMs: 60_000, keysMax: 3 };

it('a key has its bytes a window, says when there is room again, and no other key notices', () => {
  const window = new ByteWindow(RULES);
  expect([window.take('a', 60, 0), window.take('a', 40, 10_000), window.take('b', 100, 10_000)]).toEqual([0, 0, 0]);
  expect(window.take('a', 1, 10_000)).toBe(51_000);
  expect(window.take('a', 61, 10_000)).toBe(61_000);
  expect([window.take('a', 1, 60_999), window.take('a', 60, 61_000), window.take('a', 1, 61_000)]).toEqual([
    1, 0, 10_000,
  ]);
});

it('what is more than a window holds never fits, and is not counted', () => {
  const window = new ByteWindow(RULES);
  expect([window.take('a', 101, 0), window.take('a', 100, 0)]).toEqual([Number.POSITIVE_INFINITY, 0]);
});

it('the key that was quiet for longest is forgotten, however many there are', () => {
  const window = new ByteWindow(RULES);
  for (const key of ['a', 'b', 'c', 'a', 'd']) window.take(key, 50, 0);
  expect([window.size, window.take('a', 1, 0), window.take('b', 100, 0)]).toEqual([3, 1000 * 61, 0]);
});

it('no window of that length holds more, whatever comes when, and in pieces however small', () => {
  let seed = 7;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const window = new ByteWindow(RULES);
  const taken: { readonly at: number; readonly bytes: number }[] = [];
  let now = 0;
  let refused = 0;
  for (let step = 0; step < 5000; step += 1) {
    now += Math.floor(random() * 2000);
    const bytes = Math.floor(random() * 12);
    const waitMs = window.take('a', bytes, now);
    if (waitMs === 0) taken.push({ at: now, bytes });
    else refused += 1;
    const held = taken.filter(({ at }) => now - at < RULES.windowMs).reduce((sum, piece) => sum + piece.bytes, 0);
    expect(held).toBeLessThanOrEqual(100);
    // Of one that was refused the window was in truth full, but for the slot that is kept whole.
    if (waitMs > 0) {
      const nearly = taken
        .filter(({ at }) => now - at < RULES.windowMs + 1000)
        .reduce((sum, one) => sum + one.bytes, 0);
      expect(nearly + bytes).toBeGreaterThan(100);
    }
  }
  expect([refused > 100, taken.length > 100]).toEqual([true, true]);
});
