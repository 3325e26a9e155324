import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { AttemptLimits } from './attempt-limits.ts';

const limits = { auth_per_minute: 3, auth_per_account_per_minute: 2 };

const monotonic = () => 1000;

/** Returns the seconds to wait after a refused attempt, or 0 if the attempt was allowed. */
const outcome = (attempt: () => void): number => {
  try {
    attempt();
    return 0;
  } catch (error) {
    const { code, values } = error as { code: string; values: { seconds: number } };
    expect(code).toBe('LOGIN_THROTTLED');
    return values.seconds;
  }
};

it('an address has a limited number of attempts per minute, then gets the seconds to wait', async () => {
  const clock = new FakeClock();
  const attempts = new AttemptLimits(limits, () => clock.monotonic());
  const seen = [];
  for (let count = 0; count < 4; count += 1) seen.push(outcome(() => attempts.countAddress('203.0.113.7')));
  expect(seen).toEqual([0, 0, 0, 60]);
  expect(outcome(() => attempts.countAddress('203.0.113.8'))).toBe(0);
  await clock.advance(30_500);
  expect(outcome(() => attempts.countAddress('203.0.113.7'))).toBe(30);
  await clock.advance(30_000);
  expect(outcome(() => attempts.countAddress('203.0.113.7'))).toBe(0);
});

it('addresses of one IPv6 network share a limit', () => {
  const attempts = new AttemptLimits({ ...limits, auth_per_minute: 1 }, monotonic);
  expect(outcome(() => attempts.countAddress('2001:db8:0:1::1'))).toBe(0);
  expect(outcome(() => attempts.countAddress('2001:0db8:0000:0001:aaaa:bbbb:cccc:dddd'))).toBeGreaterThan(0);
  expect(outcome(() => attempts.countAddress('2001:db8::1:0:0:0:1'))).toBeGreaterThan(0);
  expect(outcome(() => attempts.countAddress('2001:db8:0:2::1'))).toBe(0);
  expect(outcome(() => attempts.countAddress('::1'))).toBe(0);
});

it("mails are limited per kind and account, regardless of the address's case, and sign-ins are limited too", () => {
  const attempts = new AttemptLimits(limits, monotonic);
  for (const kind of ['registration', 'verification', 'reset'] as const) {
    expect(outcome(() => attempts.countMail(kind, 'ann@example.com'))).toBe(0);
    expect(outcome(() => attempts.countMail(kind, ' Ann@Example.com'))).toBe(0);
    expect(outcome(() => attempts.countMail(kind, 'ANN@example.com'))).toBeGreaterThan(0);
  }
  const login = (): void =>
    attempts.beginLogin({ account: 'ann', network: '203.0.113.7', device: null, isKnownNetwork: false });
  expect([outcome(login), outcome(login), outcome(login)]).toEqual([0, 0, 60]);
});

it('the number of remembered keys is bounded', () => {
  const attempts = new AttemptLimits({ ...limits, auth_per_minute: 1 }, monotonic, 2);
  for (const address of ['a', 'b', 'c']) expect(outcome(() => attempts.countAddress(address))).toBe(0);
  // The first key was evicted to make room; the last key is still known.
  expect(outcome(() => attempts.countAddress('c'))).toBeGreaterThan(0);
  expect(outcome(() => attempts.countAddress('a'))).toBe(0);
});
