import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AttemptLimits } from './attempt-limits.ts';

const limits = { auth_per_minute: 3, auth_per_account_per_minute: 2 };

const monotonic = () => 1000;
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const outcome = async (attempt: Promise<void>): Promise<number> =>
  attempt.then(
    () => 0,
    (fault: { code: string; values: { seconds: number } }) => {
      expect(fault.code).toBe('LOGIN_THROTTLED');
      return fault.values.seconds;
    },
  );

it('lets an address try so often a minute, then says how long to wait', async () => {
  const attempts = new AttemptLimits(limits, monotonic);
  const seen = [];
  for (let count = 0; count < 4; count += 1) seen.push(await outcome(attempts.countAddress('203.0.113.7')));
  expect(seen).toEqual([0, 0, 0, 60]);
  expect(await outcome(attempts.countAddress('203.0.113.8'))).toBe(0);
  vi.advanceTimersByTime(30_500);
  expect(await outcome(attempts.countAddress('203.0.113.7'))).toBe(30);
  vi.advanceTimersByTime(30_000);
  expect(await outcome(attempts.countAddress('203.0.113.7'))).toBe(0);
});

it('counts the addresses of one IPv6 network together', async () => {
  const attempts = new AttemptLimits({ ...limits, auth_per_minute: 1 }, monotonic);
  expect(await outcome(attempts.countAddress('2001:db8:0:1::1'))).toBe(0);
  expect(await outcome(attempts.countAddress('2001:0db8:0000:0001:aaaa:bbbb:cccc:dddd'))).toBeGreaterThan(0);
  expect(await outcome(attempts.countAddress('2001:db8::1:0:0:0:1'))).toBeGreaterThan(0);
  expect(await outcome(attempts.countAddress('2001:db8:0:2::1'))).toBe(0);
  expect(await outcome(attempts.countAddress('::1'))).toBe(0);
});

it('counts the mails of an account whatever the case of its address, each kind apart, and logins too', async () => {
  const attempts = new AttemptLimits(limits, monotonic);
  for (const kind of ['registration', 'verification', 'reset'] as const) {
    expect(await outcome(attempts.countMail(kind, 'ann@example.com'))).toBe(0);
    expect(await outcome(attempts.countMail(kind, ' Ann@Example.com'))).toBe(0);
    expect(await outcome(attempts.countMail(kind, 'ANN@example.com'))).toBeGreaterThan(0);
  }
  const login = async () =>
    attempts.beginLogin({ account: 'ann', network: '203.0.113.7', device: null, isKnownNetwork: false });
  expect([await outcome(login()), await outcome(login()), await outcome(login())]).toEqual([0, 0, 60]);
});

it('holds a bounded number of keys', async () => {
  const attempts = new AttemptLimits({ ...limits, auth_per_minute: 1 }, monotonic, 2);
  for (const address of ['a', 'b', 'c']) expect(await outcome(attempts.countAddress(address))).toBe(0);
  // The first was let go to make room; the last is still known.
  expect(await outcome(attempts.countAddress('c'))).toBeGreaterThan(0);
  expect(await outcome(attempts.countAddress('a'))).toBe(0);
  expect(vi.getTimerCount()).toBe(2);
});
