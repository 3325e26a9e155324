import { expect, it } from 'vitest';
import { callerAddressOf, hostPort, networkOf, plainAddress, TrustedProxies } from './caller-address.ts';

const callerAddress = (peer: string, forwardedFor: string | undefined, trusted: readonly string[]): string =>
  callerAddressOf(trusted)(peer, forwardedFor);

it('a stranger cannot choose the address it is counted against', () => {
  expect(callerAddress('203.0.113.9', '10.0.0.1', ['127.0.0.1'])).toBe('203.0.113.9');
  expect(callerAddress('::ffff:203.0.113.9', undefined, [])).toBe('203.0.113.9');
});

it('behind trusted proxies the nearest address that is not one of them counts', () => {
  const trusted = ['127.0.0.1', '10.0.0.2'];
  expect(callerAddress('127.0.0.1', '6.6.6.6, 203.0.113.9, 10.0.0.2', trusted)).toBe('203.0.113.9');
  expect(callerAddress('127.0.0.1', undefined, trusted)).toBe('127.0.0.1');
  expect(callerAddress('127.0.0.1', '', trusted)).toBe('127.0.0.1');
});

it('a network of proxies is trusted as a whole, in either family, and what is no address is believed from nobody', () => {
  const trusted = ['10.0.0.0/8', 'fd00::/8', '::1'];
  expect(callerAddress('10.9.8.7', '203.0.113.9, 10.1.1.1', trusted)).toBe('203.0.113.9');
  expect(callerAddress('::ffff:10.9.8.7', '203.0.113.9', trusted)).toBe('203.0.113.9');
  expect(callerAddress('fd12::1', '2001:db8::5, ::1', trusted)).toBe('2001:db8::5');
  expect(callerAddress('11.0.0.1', '203.0.113.9', trusted)).toBe('11.0.0.1');
  expect(callerAddress('10.9.8.7', '203.0.113.9, unknown', trusted)).toBe('10.9.8.7');
});

it('tells a service what the caller claims and then its address, without the proxies of ours', () => {
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

it('an IPv6 address stands in brackets before its port', () => {
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
