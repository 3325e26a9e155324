import { expect, it } from 'vitest';
import { StallWatch } from './stall-watch.rules.ts';

it('a stall watch ends when no byte moves for its time while data waits', () => {
  const watch = new StallWatch(100);
  expect([watch.isOver(0, true, 7), watch.isOver(99, true, 7), watch.isOver(100, true, 7)]).toEqual([
    false,
    false,
    true,
  ]);
});

it('a stall watch restarts with every byte, and whenever no data waits', () => {
  const watch = new StallWatch(100);
  watch.isOver(0, true, 7);
  expect([watch.isOver(90, true, 8), watch.isOver(180, true, 8)]).toEqual([false, false]);
  expect([watch.isOver(185, false, 8), watch.isOver(190, true, 8), watch.isOver(289, true, 8)]).toEqual([
    false,
    false,
    false,
  ]);
  expect(watch.isOver(290, true, 8)).toBe(true);
});

/** The model is the time since the last look with progress or without waiting data. */
it('a stall watch agrees with a simple model over 20,000 random steps', () => {
  let seed = 11;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const watch = new StallWatch(50);
  let [nowMs, progress, sinceMs]: [number, number, number | null] = [0, 0, null];
  let ends = 0;
  for (let step = 0; step < 20_000; step += 1) {
    nowMs += Math.floor(random() * 20);
    const waits = random() < 0.95;
    const moves = random() < 0.15;
    if (moves) progress += 1 + Math.floor(random() * 100);
    if (!waits) sinceMs = null;
    else if (moves || sinceMs === null) sinceMs = nowMs;
    const expected = sinceMs !== null && nowMs - sinceMs >= 50;
    if (expected) ends += 1;
    expect(watch.isOver(nowMs, waits, progress)).toBe(expected);
  }
  expect(ends).toBeGreaterThan(100);
});
