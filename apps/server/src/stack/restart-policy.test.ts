import { expect, it } from 'vitest';
import { afterEnd, RESTART_BOUNDS, type RestartState, UNTRIED } from './restart-policy.ts';

/** Ends at these times, each after so long a life: the delays, and which of them were loud. */
const endAt = (ends: readonly (readonly [now: number, livedMs: number])[]) => {
  let state: RestartState = UNTRIED;
  return ends.map(([now, livedMs]) => {
    const restart = afterEnd(state, { now, livedMs });
    state = restart.state;
    return [restart.delayMs, restart.isLoud];
  });
};

it('starts at once, then ever later, and goes on trying', () => {
  const ends = Array.from({ length: 8 }, (_, at) => [at * 20_000, 10] as const);
  expect(endAt(ends).map(([delayMs]) => delayMs)).toEqual([0, 200, 500, 1000, 2000, 5000, 5000, 5000]);
});

it('starts anew at once when it lived for a minute', () => {
  const ends = [
    [0, 10],
    [1000, 10],
    [2000, 10],
    [62_000, 59_999],
    [122_000, 60_000],
    [123_000, 10],
  ] as const;
  expect(endAt(ends).map(([delayMs]) => delayMs)).toEqual([0, 200, 500, 1000, 0, 200]);
});

it('is loud once when it ended five times within a minute, and again only after it had come to rest', () => {
  const restless = [0, 1000, 2000, 3000, 4000, 5000, 6000].map((now) => [now, 10] as const);
  expect(endAt(restless).map(([, isLoud]) => isLoud)).toEqual([false, false, false, false, true, false, false]);
  const again = [500_000, 501_000, 502_000, 503_000, 504_000].map((now) => [now, 10] as const);
  expect(endAt([...restless, ...again]).filter(([, isLoud]) => isLoud)).toHaveLength(2);
  const calm = [0, 15_001, 30_002, 45_003, 60_004, 75_005].map((now) => [now, 10] as const);
  expect(endAt(calm).some(([, isLoud]) => isLoud)).toBe(false);
});

it('whatever happens, waits no longer than 5 s, remembers five ends at most, and is loud only with five in a minute', () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  let state: RestartState = UNTRIED;
  let now = 0;
  const all: number[] = [];
  for (let ends = 0; ends < 2000; ends += 1) {
    const livedMs = random(10) === 0 ? random(200_000) : random(12_000);
    now += livedMs;
    all.push(now);
    const before = state;
    const restart = afterEnd(state, { now, livedMs });
    state = restart.state;
    const longest = RESTART_BOUNDS.DELAYS_MS.at(-1) ?? 0;
    expect(restart.delayMs).toBeLessThanOrEqual(longest);
    if (livedMs >= RESTART_BOUNDS.LIVED_MS) expect(restart.delayMs).toBe(0);
    else expect(restart.delayMs).toBe(RESTART_BOUNDS.DELAYS_MS[before.tries]);
    expect(state.endedAt.length).toBeLessThanOrEqual(RESTART_BOUNDS.LOUD_ENDS);
    const within = all.filter((at) => at > now - RESTART_BOUNDS.LOUD_WITHIN_MS).length;
    expect(state.isToldOf).toBe(within >= RESTART_BOUNDS.LOUD_ENDS);
    expect(restart.isLoud).toBe(state.isToldOf && !before.isToldOf);
    if (all.length > 50) all.shift();
    now += restart.delayMs;
  }
});
