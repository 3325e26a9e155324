import { expect, it } from 'vitest';
import { afterEnd, RESTART_BOUNDS, type RestartState, UNTRIED } from './restart-policy.ts';

const { DELAYS_MS, LOUD_ENDS, WITHIN_MS } = RESTART_BOUNDS;

/** Simulates exits at the given times. Returns, for every exit, the restart delay and whether a loud alert was raised. */
const endAt = (ends: readonly number[]) => {
  let state: RestartState = UNTRIED;
  return ends.map((now) => {
    const restart = afterEnd(state, now);
    state = restart.state;
    return [restart.delayMs, restart.isLoud];
  });
};

it('a part is restarted forever, with growing delays from the third exit within a minute', () => {
  const ends = Array.from({ length: 12 }, (_, at) => at * 5000);
  const pauses = [0, 0, 500, 1000, 2000, 2000, 2000, 2000, 2000, 5000, 5000, 5000];
  expect(endAt(ends).map(([delayMs]) => delayMs)).toEqual(pauses);
});

it('a part that exits at most twice a minute is restarted without delay', () => {
  const ends = Array.from({ length: 8 }, (_, at) => at * 30_000);
  expect(endAt(ends).map(([delayMs]) => delayMs)).toEqual(ends.map(() => 0));
});

it('an exit is forgotten after a minute', () => {
  expect(endAt([0, 1000, 59_999]).map(([delayMs]) => delayMs)).toEqual([0, 0, 500]);
  expect(endAt([0, 1000, 60_000, 61_000]).map(([delayMs]) => delayMs)).toEqual([0, 0, 0, 0]);
});

it('the loud alert comes once after five exits within a minute, and again only after a quiet period', () => {
  const restless = [0, 1000, 2000, 3000, 4000, 5000, 6000];
  expect(endAt(restless).map(([, isLoud]) => isLoud)).toEqual([false, false, false, false, true, false, false]);
  const again = [500_000, 501_000, 502_000, 503_000, 504_000];
  expect(endAt([...restless, ...again]).filter(([, isLoud]) => isLoud)).toHaveLength(2);
  const calm = [0, 15_001, 30_002, 45_003, 60_004, 75_005];
  expect(endAt(calm).some(([, isLoud]) => isLoud)).toBe(false);
});

it('for random exits the delay depends only on the exits of the last minute, at most ten are kept, and the alert needs five', () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  let state: RestartState = UNTRIED;
  let now = 0;
  let all: number[] = [];
  const pauses = new Set<number>();
  for (let ends = 0; ends < 600; ends += 1) {
    now += random(20) === 0 ? random(200_000) : random(8000);
    all = [...all.filter((at) => at > now - WITHIN_MS), now];
    const before = state;
    const restart = afterEnd(state, now);
    state = restart.state;
    pauses.add(restart.delayMs);
    expect(restart.delayMs).toBe(DELAYS_MS[Math.min(all.length, DELAYS_MS.length) - 1]);
    expect(restart.delayMs > 0).toBe(all.length >= 3);
    expect(state.endedAt.length).toBeLessThanOrEqual(DELAYS_MS.length);
    expect(state.isToldOf).toBe(all.length >= LOUD_ENDS);
    expect(restart.isLoud).toBe(state.isToldOf && !before.isToldOf);
    now += restart.delayMs;
  }
  expect([...pauses].sort((a, b) => a - b)).toEqual([...new Set(DELAYS_MS)]);
});
