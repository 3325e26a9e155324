// Wrong keys are counted by network, because an IPv6 /64 has more addresses than a count per address could hold.
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { AuthFailures } from './authentication.ts';

it('wrong keys from one IPv6 /64 are counted together, separately from other networks', () => {
  const failures = new AuthFailures({ clock: new FakeClock(), perMinute: 3 });
  for (const address of ['2001:db8:0:1::1', '2001:db8:0:1::2', '2001:db8:0:1:ffff::3']) failures.failed(address);
  expect(failures.blockedForSecs('2001:db8:0:1:abcd::4')).toBe(60);
  expect(failures.blockedForSecs('2001:db8:0:2::1')).toBe(0);
  expect(failures.total).toBe(3);
});

it('wrong keys are counted separately for each IPv4 address', () => {
  const failures = new AuthFailures({ clock: new FakeClock(), perMinute: 2 });
  for (const address of ['192.0.2.1', '192.0.2.1']) failures.failed(address);
  expect([failures.blockedForSecs('192.0.2.1'), failures.blockedForSecs('192.0.2.2')]).toEqual([60, 0]);
});
