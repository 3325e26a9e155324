import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LoginAttempt, LoginAttempts } from './login-attempts.rules.ts';

const RULES = { perWindow: 4, windowMs: 60_000, countsMax: 1000 };
const stranger = (network: string): LoginAttempt => ({ account: 'ann', network, device: null, isKnownNetwork: false });
const AT_HOME: LoginAttempt = { ...stranger('home'), isKnownNetwork: true };
const ON_LAPTOP: LoginAttempt = { ...stranger('cafe'), device: 'laptop' };

const fail = (attempts: LoginAttempts, attempt: LoginAttempt, times: number, now = 0): (number | null)[] =>
  Array.from({ length: times }, () => attempts.begin(attempt, now));

describe('a guesser', () => {
  it('is refused after its failures, for the rest of the minute', () => {
    const attempts = new LoginAttempts(RULES);
    expect(fail(attempts, stranger('bad'), 5)).toEqual([null, null, null, null, 60_000]);
    expect(attempts.begin(stranger('bad'), 59_999)).toBe(1);
    expect(attempts.begin(stranger('bad'), 60_000)).toBeNull();
  });

  it('keeps nobody else out from one network: neither the owner where it was before nor where it never was', () => {
    const attempts = new LoginAttempts(RULES);
    fail(attempts, stranger('bad'), 100);
    for (const attempt of [AT_HOME, ON_LAPTOP, stranger('holiday')]) expect(attempts.begin(attempt, 1)).toBeNull();
  });

  it('with many networks slows down strangers, and never the owner where it was before', () => {
    const attempts = new LoginAttempts(RULES);
    const seen = Array.from({ length: 20 }, (_, index) => attempts.begin(stranger(`bad-${index}`), 0));
    expect(seen.filter((wait) => wait === null)).toHaveLength(RULES.perWindow);
    expect(attempts.begin(stranger('holiday'), 1)).toBe(59_999);
    expect(attempts.begin(AT_HOME, 1)).toBeNull();
    expect(attempts.begin(ON_LAPTOP, 1)).toBeNull();
    expect(attempts.begin(stranger('holiday'), 60_000)).toBeNull();
  });

  it('in the network of the owner does not keep out a device that was there before', () => {
    const attempts = new LoginAttempts(RULES);
    expect(fail(attempts, AT_HOME, 5).at(-1)).toBe(60_000);
    expect(attempts.begin({ ...AT_HOME, device: 'laptop' }, 1)).toBeNull();
  });
});

describe('an owner', () => {
  it('who types it right is not counted, however often', () => {
    const attempts = new LoginAttempts(RULES);
    for (let times = 0; times < 100; times += 1) {
      for (const attempt of [AT_HOME, ON_LAPTOP, stranger('holiday')]) {
        expect(attempts.begin(attempt, 0)).toBeNull();
        attempts.succeeded(attempt);
      }
    }
  });

  it('is counted for an account alone', () => {
    const attempts = new LoginAttempts(RULES);
    fail(attempts, AT_HOME, 5);
    expect(attempts.begin({ ...AT_HOME, account: 'bob' }, 0)).toBeNull();
  });
});

it('whoever tries what, and when: guesses of strangers stay within their bounds, and the owner’s first of a minute is taken', () => {
  const tries = fc.array(fc.record({ network: fc.nat(8), gapMs: fc.nat(8000) }), { maxLength: 200, size: 'max' });
  fc.assert(
    fc.property(tries, (guesses) => {
      const attempts = new LoginAttempts(RULES);
      const taken: { at: number; network: number }[] = [];
      let at = 0;
      for (const { network, gapMs } of guesses) {
        at += gapMs;
        if (attempts.begin(stranger(`bad-${network}`), at) === null) taken.push({ at, network });
      }
      for (const { at: from, network } of taken) {
        const within = taken.filter((one) => one.at >= from && one.at < from + RULES.windowMs);
        // Windows follow each other: any minute touches two of them.
        expect(within.filter((one) => one.network === network).length).toBeLessThanOrEqual(2 * RULES.perWindow);
        // What one network adds beyond its share is its own affair.
        expect(within.length).toBeLessThanOrEqual(2 * (RULES.perWindow + 9 * (RULES.perWindow / 2)));
      }
      expect(attempts.begin(AT_HOME, at)).toBeNull();
      expect(attempts.begin(ON_LAPTOP, at)).toBeNull();
    }),
  );
});
