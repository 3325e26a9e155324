import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressKeyOf, flowKeyOf, ipv4Of, isLoop, prefixKeyOf } from './flow-key.ts';

describe('the key of a UDP flow', () => {
  it('is a unique number for each IPv4 address and port', () => {
    expect(flowKeyOf('0.0.0.0', 1)).toBe(1);
    expect(flowKeyOf('255.255.255.255', 65_535)).toBe(2 ** 48 - 1);
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV4(), fc.nat(65_535), fc.nat(65_535), (a, b, p, q) => {
        expect(flowKeyOf(a, p) === flowKeyOf(b, q)).toBe(a === b && p === q);
      }),
    );
  });

  it('is the same for an IPv4 address and its IPv4-mapped form, also for limits by address and by prefix', () => {
    for (const of of [addressKeyOf, prefixKeyOf, (address: string) => flowKeyOf(address, 53)]) {
      expect(of('::ffff:10.1.2.3')).toBe(of('10.1.2.3'));
    }
  });

  it('is text for an IPv6 address, and for a string that is not an address', () => {
    expect(flowKeyOf('fe80::1%eth0', 5)).toBe('fe80::1%eth0 5');
    fc.assert(fc.property(fc.ipV6(), (address) => typeof prefixKeyOf(address) === 'string'));
    for (const odd of [
      '',
      '1.2.3',
      '1.2.3.4.5',
      '1.2.3.256',
      '1..2.3',
      '1.2.3.',
      '.1.2.3',
      'a.b.c.d',
      '::ffff:',
      '1.2.3.4 ',
    ]) {
      expect([odd, ipv4Of(odd)]).toEqual([odd, -1]);
      expect([addressKeyOf(odd), prefixKeyOf(odd)]).toEqual([odd, odd]);
    }
  });
});

it('UDP flows count toward an IPv4 address or an IPv6 /64, new flows toward a /24 or /56', () => {
  expect(addressKeyOf('2001:db8:1:2:3::4')).toBe(addressKeyOf('2001:db8:1:2::9'));
  expect(addressKeyOf('2001:db8:1:2::1')).not.toBe(addressKeyOf('2001:db8:1:3::1'));
  expect(prefixKeyOf('2001:db8:1:2ff::1')).toBe(prefixKeyOf('2001:db8:1:200::1'));
  expect(prefixKeyOf('2001:db8:1:200::1')).not.toBe(prefixKeyOf('2001:db8:1:300::1'));
  expect(prefixKeyOf('10.1.2.3')).toBe(prefixKeyOf('10.1.2.250'));
  expect(prefixKeyOf('10.1.2.3')).not.toBe(prefixKeyOf('10.1.3.3'));
});

it("a datagram from one of the edge's own ports, or from port 0, is a loop", () => {
  const facts = {
    ownAddresses: new Set(['10.0.0.1', '::1']),
    range: { from: 20_100, to: 20_199 },
    pathPorts: [4500, 4501],
  };
  for (const [address, port] of [
    ['10.0.0.1', 20_100],
    ['10.0.0.1', 20_199],
    ['::ffff:10.0.0.1', 20_150],
    ['::1', 4501],
    ['192.0.2.7', 0],
  ] as const) {
    expect([address, port, isLoop(address, port, facts)]).toEqual([address, port, true]);
  }
  for (const [address, port] of [
    ['10.0.0.1', 20_200],
    ['192.0.2.7', 20_100],
    ['192.0.2.7', 4500],
  ] as const) {
    expect([address, port, isLoop(address, port, facts)]).toEqual([address, port, false]);
  }
});
