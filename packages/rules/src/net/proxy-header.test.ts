import { describe, expect, it } from 'vitest';
import { hostPort } from './caller-address.ts';
import { proxyHeader, proxyLine, readHostPort } from './proxy-header.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const headerOf = (visitor: string, host: string, port: number): string =>
  hex(proxyHeader(readHostPort(visitor), { host, port }));

describe('the PROXY header of a datagram', () => {
  it.each([
    // The first row encodes 203.0.113.9:50000 to 198.51.100.7:20153.
    ['IPv4', '203.0.113.9:50000', '198.51.100.7', 20_153, '2112000ccb007109c6336407c3504eb9'],
    [
      'IPv6',
      '[2001:db8::9]:50000',
      '2001:db8::7',
      20_153,
      '2122002420010db800000000000000000000000920010db8000000000000000000000007c3504eb9',
    ],
    [
      'a visitor over IPv6 of an edge that is known by IPv4',
      '[2001:db8::9]:1',
      '198.51.100.7',
      2,
      '2122002420010db800000000000000000000000900000000000000000000ffffc633640700010002',
    ],
    [
      'a visitor over IPv4 of an edge that is known by IPv6',
      '203.0.113.9:1',
      '2001:db8::7',
      2,
      '2122002400000000000000000000ffffcb00710920010db800000000000000000000000700010002',
    ],
    ['an edge that is known by name, IPv4', '203.0.113.9:1', 'edge.test', 2, '2112000ccb0071090000000000010002'],
    [
      'an edge that is known by name, IPv6',
      '[::1]:1',
      'localhost',
      65_535,
      '21220024000000000000000000000000000000010000000000000000000000000000000000' + '01ffff',
    ],
    ['an address with a zone', '[fe80::1%eth0]:1', '::', 2, `21220024fe80${'0'.repeat(27)}1${'0'.repeat(32)}00010002`],
    ['a visitor that is no address', 'somebody:1', '198.51.100.7', 2, '21000000'],
  ])('%s', (_, visitor, host, port, bytes) => {
    expect(headerOf(visitor, host, port)).toBe(SIGNATURE + bytes);
  });

  it("has no addresses if the visitor's address is unreadable", () => {
    expect(hex(proxyHeader(null, { host: '198.51.100.7', port: 2 }))).toBe(`${SIGNATURE}21000000`);
  });
});

describe('the PROXY header of a TCP connection', () => {
  it.each([
    ['IPv4', '203.0.113.9:50000', '198.51.100.7', '2111000ccb007109c6336407c3504eb9'],
    [
      'IPv6',
      '[2001:db8::9]:50000',
      '2001:db8::7',
      '2121002420010db800000000000000000000000920010db8000000000000000000000007c3504eb9',
    ],
  ])('names the TCP transport in version 2: %s', (_, visitor, host, bytes) => {
    expect(hex(proxyHeader(readHostPort(visitor), { host, port: 20_153 }, 'tcp'))).toBe(SIGNATURE + bytes);
  });

  it.each([
    ['203.0.113.9:50000', '198.51.100.7', 'PROXY TCP4 203.0.113.9 198.51.100.7 50000 20153'],
    ['[2001:db8::9]:50000', '2001:db8::7', 'PROXY TCP6 2001:db8::9 2001:db8::7 50000 20153'],
    ['[2001:db8::9]:1', '198.51.100.7', 'PROXY TCP6 2001:db8::9 ::ffff:c633:6407 1 20153'],
    ['203.0.113.9:1', 'edge.test', 'PROXY TCP4 203.0.113.9 0.0.0.0 1 20153'],
    ['[::1]:1', 'localhost', 'PROXY TCP6 ::1 :: 1 20153'],
    ['somebody:1', '198.51.100.7', 'PROXY UNKNOWN'],
  ])('is one line in version 1: %s at %s', (visitor, host, line) => {
    expect(proxyLine(readHostPort(visitor), { host, port: 20_153 })).toBe(`${line}\r\n`);
  });

  it('in version 1 has at most 107 bytes, the buffer that a receiver must have', () => {
    const longest = 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
    const line = proxyLine({ host: longest, port: 65_535 }, { host: longest, port: 65_535 });
    expect(line.length).toBeLessThanOrEqual(107);
  });
});

describe('text with host and port', () => {
  it.each([
    ['203.0.113.9', 50_000],
    ['2001:db8::9', 1],
    ['edge.test', 65_535],
  ])('for %s is read back as it was written', (host, port) => {
    expect(readHostPort(hostPort(host, port))).toEqual({ host, port });
  });

  it.each(['', 'host', ':5', 'host:', 'host:65536', '2001:db8::9:5', '[::1]', 'a:b:5', 'host:5 '])(
    '%j is refused',
    (text) => {
      expect(readHostPort(text)).toBeNull();
    },
  );
});
