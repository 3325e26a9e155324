import { expect, it } from 'vitest';
import { CallLimits } from './call-limits.rules.ts';

const RULES = { openMax: 2, perWindow: 5, windowMs: 60_000, accountsMax: 10 };

it('an account can have a limited number of open calls, without effect on other accounts', () => {
  const limits = new CallLimits(RULES);
  expect(limits.begin('a', 0)).toEqual({ allowed: true });
  expect(limits.begin('a', 0)).toEqual({ allowed: true });
  expect(limits.begin('a', 0)).toEqual({ allowed: false, reason: 'open' });
  expect(limits.begin('b', 0)).toEqual({ allowed: true });
  limits.ended('a');
  expect(limits.begin('a', 0)).toEqual({ allowed: true });
});

it('an account can begin a limited number of calls per window, and refused calls do not count', () => {
  const limits = new CallLimits(RULES);
  const callAt = (now: number) => {
    const verdict = limits.begin('a', now);
    if (verdict.allowed) limits.ended('a');
    return verdict;
  };
  for (let count = 0; count < 5; count += 1) expect(callAt(1000)).toEqual({ allowed: true });
  expect(callAt(2000)).toEqual({ allowed: false, reason: 'rate', retryAfterMs: 59_000 });
  expect(callAt(60_999)).toEqual({ allowed: false, reason: 'rate', retryAfterMs: 1 });
  expect(callAt(61_000)).toEqual({ allowed: true });
});

it('in any order of begins and ends, the open count equals begun minus ended calls', () => {
  const limits = new CallLimits({ ...RULES, openMax: 3, perWindow: 1e6 });
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  const open = new Map<string, number>();
  for (let step = 0; step < 5000; step += 1) {
    const account = `acc_${next(4)}`;
    const held = open.get(account) ?? 0;
    if (next(2) === 0) {
      expect(limits.begin(account, step).allowed).toBe(held < 3);
      open.set(account, Math.min(3, held + 1));
    } else if (held > 0) {
      limits.ended(account);
      open.set(account, held - 1);
    }
    expect(limits.openOf(account)).toBe(open.get(account) ?? 0);
  }
});
