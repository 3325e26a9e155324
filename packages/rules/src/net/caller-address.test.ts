import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { expect, it } from 'vitest';
import { createCallerAddress, hostPort, networkOf, plainAddress, TrustedProxies } from './caller-address.ts';

const callerAddress = (peer: string, forwardedFor: string | undefined, trusted: readonly string[]): string =>
  createCallerAddress(trusted)(peer, forwardedFor);

it('an untrusted caller cannot choose its address with X-Forwarded-For', () => {
  expect(callerAddress('203.0.113.9', '10.0.0.1', ['127.0.0.1'])).toBe('203.0.113.9');
  expect(callerAddress('::ffff:203.0.113.9', undefined, [])).toBe('203.0.113.9');
});

it('behind trusted proxies, the nearest address that is not a proxy is the caller', () => {
  const trusted = ['127.0.0.1', '10.0.0.2'];
  expect(callerAddress('127.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2', trusted)).toBe('203.0.113.9');
  expect(callerAddress('127.0.0.1', undefined, trusted)).toBe('127.0.0.1');
  expect(callerAddress('127.0.0.1', '', trusted)).toBe('127.0.0.1');
});

it('a trusted network of proxies covers all its addresses, in IPv4 and IPv6, and text that is not an address is ignored', () => {
  const trusted = ['10.0.0.0/8', 'fd00::/8', '::1'];
  expect(callerAddress('10.9.8.7', '203.0.113.9, 10.1.1.1', trusted)).toBe('203.0.113.9');
  expect(callerAddress('::ffff:10.9.8.7', '203.0.113.9', trusted)).toBe('203.0.113.9');
  expect(callerAddress('fd12::1', '2001:db8::5, ::1', trusted)).toBe('2001:db8::5');
  expect(callerAddress('11.0.0.1', '203.0.113.9', trusted)).toBe('11.0.0.1');
  expect(callerAddress('10.9.8.7', '203.0.113.9, unknown', trusted)).toBe('10.9.8.7');
});

it("the forwarded chain has the caller's claims, then its real address, without trusted proxies", () => {
  const proxies = new TrustedProxies(['10.0.0.0/8']);
  const chainOf = (peer: string, forwardedFor?: string): string => proxies.callerOf(peer, forwardedFor).chain;
  expect(chainOf('10.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2')).toBe('6.6.6.6, 203.0.113.9');
  expect(chainOf('10.0.0.1', '203.0.113.9')).toBe('203.0.113.9');
  expect(chainOf('10.0.0.1')).toBe('10.0.0.1');
  expect(chainOf('10.0.0.1', '203.0.113.9,, unknown')).toBe('203.0.113.9, unknown, 10.0.0.1');
  expect(chainOf('203.0.113.9', '6.6.6.6')).toBe('6.6.6.6, 203.0.113.9');
});

it('an IPv4 peer of a dual-stack listener is shown as IPv4', () => {
  expect(plainAddress('::ffff:203.0.113.7')).toBe('203.0.113.7');
  expect(hostPort('::FFFF:203.0.113.7', 80)).toBe('203.0.113.7:80');
});

it('an IPv6 address is in brackets before its port', () => {
  expect(hostPort('2001:db8::1', 443)).toBe('[2001:db8::1]:443');
});

it.each([
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['nonsense:', 'nonsense:'],
])('a limit per address counts %s as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it('an IPv6 address in any notation counts as its /64', () => {
  const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff }));
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (parts) => {
      const address = new ipaddr.IPv6([...parts]);
      const [high = 0, low = 0] = parts.slice(6);
      const dotted = [high >> 8, high & 255, low >> 8, low & 255].join('.');
      const network = `${parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`;
      const whole = address.toNormalizedString();
      const short = address.toRFC5952String();
      const forms = [
        whole,
        short,
        short.toUpperCase(),
        parts.map((part) => part.toString(16).padStart(4, '0')).join(':'),
        `${short}%eth0`,
      ];
      for (const form of [...forms, `${whole.split(':').slice(0, 6).join(':')}:${dotted}`]) {
        expect(networkOf(form)).toBe(network);
      }
    }),
  );
});
