import { expect, it } from 'vitest';
import { afterConnect, afterFailure, type BackoffState, CALM } from './backoff.ts';

const RULES = { minMs: 500, maxMs: 30_000, stableAfterMs: 60_000 };
const ALMOST_ONE = 1 - Number.EPSILON;

const delays = (count: number, random: number): number[] => {
  let state: BackoffState = CALM;
  return Array.from({ length: count }, () => {
    const next = afterFailure(state, 0, random, RULES);
    state = next.state;
    return next.delayMs;
  });
};

it('doubles from half a second to half a minute and stays there', () => {
  expect(delays(7, 0)).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
  expect(delays(7, ALMOST_ONE)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(delays(2000, ALMOST_ONE).at(-1)).toBe(30_000);
});

it('spreads each delay over the upper half of its span by the chance it is given', () => {
  expect(delays(3, 0.5)).toEqual([750, 1500, 3000]);
});

it('forgets earlier failures only after a stable minute', () => {
  const tired: BackoffState = { failures: 5, connectedAt: null };
  const flapped = afterFailure(afterConnect(tired, 1000), 60_999, ALMOST_ONE, RULES);
  expect([flapped.delayMs, flapped.state.failures]).toEqual([30_000, 6]);
  const stable = afterFailure(afterConnect(tired, 1000), 61_000, ALMOST_ONE, RULES);
  expect([stable.delayMs, stable.state.failures]).toEqual([1000, 1]);
});
