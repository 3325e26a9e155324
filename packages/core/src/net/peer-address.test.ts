import { expect, it } from 'vitest';
import { hostPort, plainAddress } from './caller-address.ts';

it('an IPv4 peer of a dual-stack listener is shown as IPv4', () => {
  expect(plainAddress('::ffff:203.0.113.7')).toBe('203.0.113.7');
  expect(hostPort('::FFFF:203.0.113.7', 80)).toBe('203.0.113.7:80');
});

it('an IPv6 address stands in brackets before its port', () => {
  expect(hostPort('2001:db8::1', 443)).toBe('[2001:db8::1]:443');
});
