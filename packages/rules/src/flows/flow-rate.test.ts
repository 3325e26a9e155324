import { expect, it } from 'vitest';
import { RULE_LIMITS } from '../limits.ts';
import { NewFlowRate } from './flow-rate.ts';

it('without a limit remembers nobody', () => {
  const rate = new NewFlowRate(0);
  for (let n = 0; n < 1000; n += 1) expect(rate.take(`10.0.${n % 256}.1`, 0)).toBe(true);
  expect(rate.size).toBe(0);
});

it('a prefix that goes on has no more than its rate, whatever others do', () => {
  const rate = new NewFlowRate(10);
  let taken = 0;
  for (let now = 0; now <= 60_000; now += 10) {
    if (rate.take('192.0.2.1', now)) taken += 1;
    rate.take(`10.${(now >> 16) & 255}.${(now >> 8) & 255}.1`, now);
  }
  expect(taken).toBe(20 + 600);
});

it('remembers a bounded number of prefixes, and those of the last two seconds among them', () => {
  const rate = new NewFlowRate(1);
  for (let n = 0; n < 100_000; n += 1) rate.take(`${10 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}.1`, 0);
  expect(rate.size).toBeLessThanOrEqual(2 * RULE_LIMITS.FLOW_PREFIXES_MAX);
  const last = '11.134.159.7';
  expect([rate.take(last, 0), rate.take(last, 0)]).toEqual([true, false]);
});

it('forgets whoever has been quiet for long', () => {
  const rate = new NewFlowRate(1);
  for (let n = 0; n < 100; n += 1) rate.take(`10.0.${n}.1`, 0);
  for (const now of [3000, 6000, 9000]) rate.take('192.0.2.1', now);
  expect(rate.size).toBe(1);
});
