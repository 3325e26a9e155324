import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FailureWindow } from './failure-window.ts';

const RULES = { perWindow: 3, windowMs: 60_000, addressesMax: 4 };

it('refuses an address after its failures of the minute and says when it may come back', () => {
  const window = new FailureWindow(RULES);
  for (const now of [0, 1000, 2000]) {
    expect(window.check('a', now)).toEqual({ allowed: true });
    window.record('a', now);
  }
  expect(window.check('a', 3000)).toEqual({ allowed: false, retryAfterMs: 57_000 });
  expect(window.check('b', 3000)).toEqual({ allowed: true });
  expect(window.check('a', 60_000)).toEqual({ allowed: true });
});

it('starts a new minute with the first failure after the old one', () => {
  const window = new FailureWindow(RULES);
  for (const now of [0, 59_000, 60_000, 60_001]) window.record('a', now);
  expect(window.check('a', 60_002)).toEqual({ allowed: true });
});

it('counts one less when a failure was none', () => {
  const window = new FailureWindow(RULES);
  expect(window.forgive('a')).toBe(false);
  for (let n = 0; n < 3; n += 1) window.record('a', 0);
  expect(window.check('a', 1).allowed).toBe(false);
  expect(window.forgive('a')).toBe(true);
  expect(window.check('a', 1)).toEqual({ allowed: true });
});

it('never grows over its bound and drops the oldest first', () => {
  const window = new FailureWindow(RULES);
  for (let n = 0; n < 3; n += 1) window.record('first', 0);
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 50 }), (addresses) => {
      for (const address of addresses) window.record(address, 1);
      expect(window.size).toBeLessThanOrEqual(RULES.addressesMax);
    }),
  );
  expect(window.check('first', 2)).toEqual({ allowed: true });
});
