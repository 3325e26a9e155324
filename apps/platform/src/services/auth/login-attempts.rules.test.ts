import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LoginAttempt, LoginAttempts } from './login-attempts.rules.ts';

const RULES = { perWindow: 4, windowMs: 60_000, countsMax: 1000 };
const stranger = (network: string): LoginAttempt => ({ account: 'ann', network, device: null, isKnownNetwork: false });
const AT_HOME: LoginAttempt = { ...stranger('home'), isKnownNetwork: true };
const ON_LAPTOP: LoginAttempt = { ...stranger('cafe'), device: 'laptop' };

const fail = (attempts: LoginAttempts, attempt: LoginAttempt, times: number, now = 0): (number | null)[] =>
  Array.from({ length: times }, () => attempts.begin(attempt, now));

describe('a password guesser', () => {
  it('is refused for the rest of the minute after 4 failures', () => {
    const attempts = new LoginAttempts(RULES);
    expect(fail(attempts, stranger('bad'), 5)).toEqual([null, null, null, null, 60_000]);
    expect(attempts.begin(stranger('bad'), 59_999)).toBe(1);
    expect(attempts.begin(stranger('bad'), 60_000)).toBeNull();
  });

  it("on one network does not lock out the owner on a known, a new or a device's network", () => {
    const attempts = new LoginAttempts(RULES);
    fail(attempts, stranger('bad'), 100);
    for (const attempt of [AT_HOME, ON_LAPTOP, stranger('holiday')]) expect(attempts.begin(attempt, 1)).toBeNull();
  });

  it("on many networks delays unknown networks, but never the owner's known networks and devices", () => {
    const attempts = new LoginAttempts(RULES);
    const seen = Array.from({ length: 20 }, (_, index) => attempts.begin(stranger(`bad-${index}`), 0));
    expect(seen.filter((wait) => wait === null)).toHaveLength(RULES.perWindow);
    expect(attempts.begin(stranger('holiday'), 1)).toBe(59_999);
    expect(attempts.begin(AT_HOME, 1)).toBeNull();
    expect(attempts.begin(ON_LAPTOP, 1)).toBeNull();
    expect(attempts.begin(stranger('holiday'), 60_000)).toBeNull();
  });

  it("in the owner's network does not lock out a known device", () => {
    const attempts = new LoginAttempts(RULES);
    expect(fail(attempts, AT_HOME, 5).at(-1)).toBe(60_000);
    expect(attempts.begin({ ...AT_HOME, device: 'laptop' }, 1)).toBeNull();
  });
});

describe('an account owner', () => {
  it('with the correct password is never limited', () => {
    const attempts = new LoginAttempts(RULES);
    for (let times = 0; times < 100; times += 1) {
      for (const attempt of [AT_HOME, ON_LAPTOP, stranger('holiday')]) {
        expect(attempts.begin(attempt, 0)).toBeNull();
        attempts.succeeded(attempt);
      }
    }
  });

  it('is limited per account only', () => {
    const attempts = new LoginAttempts(RULES);
    fail(attempts, AT_HOME, 5);
    expect(attempts.begin({ ...AT_HOME, account: 'bob' }, 0)).toBeNull();
  });
});

it("in any sequence of attempts, guesses stay bounded and the owner's first attempt in a minute is allowed", () => {
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
        // Windows are fixed, so any period of a minute can touch two windows.
        expect(within.filter((one) => one.network === network).length).toBeLessThanOrEqual(2 * RULES.perWindow);
        // A network may exceed the shared limit by the share of the network.
        expect(within.length).toBeLessThanOrEqual(2 * (RULES.perWindow + 9 * (RULES.perWindow / 2)));
      }
      expect(attempts.begin(AT_HOME, at)).toBeNull();
      expect(attempts.begin(ON_LAPTOP, at)).toBeNull();
    }),
  );
});
