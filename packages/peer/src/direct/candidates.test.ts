import { describe, expect, it } from 'vitest';
import { PEER_LIMITS } from '../limits.ts';
import { listCandidates, ownAddresses } from './candidates.ts';

const address = (text: string, internal = false) => ({
  address: text,
  internal,
  netmask: '',
  mac: '',
  cidr: null,
  ...(text.includes(':') ? { family: 'IPv6' as const, scopeid: 0 } : { family: 'IPv4' as const }),
});

const INTERFACES = {
  lo: [address('127.0.0.1', true), address('::1', true)],
  eth0: [address('192.168.1.20'), address('2001:db8::20'), address('fe80::1'), address('fd00::20')],
  usb0: [address('169.254.7.7')],
  gone: undefined,
};

describe('the own addresses of a peer', () => {
  it('include IPv4 and global IPv6 addresses, but no loopback or link-local addresses', () => {
    expect(ownAddresses(false, INTERFACES)).toEqual(['192.168.1.20', '2001:db8::20']);
  });

  it('include loopback addresses when the edge is on the same computer', () => {
    expect(ownAddresses(true, INTERFACES)).toEqual(['127.0.0.1', '::1', '192.168.1.20', '2001:db8::20']);
  });

  it('can be read on this computer', () => {
    expect(ownAddresses(true)).toContain('127.0.0.1');
    expect(ownAddresses(false)).not.toContain('127.0.0.1');
  });
});

describe('the address candidates', () => {
  const seen = { host: '203.0.113.5', port: 61_000 };

  it('list observed addresses first, then own addresses, without duplicates', () => {
    const observed = { addresses: [seen, seen, { host: '192.168.1.20', port: 4000 }], ports: 'consistent' } as const;
    expect(listCandidates(['192.168.1.20', '2001:db8::20'], 4000, observed)).toEqual([
      seen,
      { host: '192.168.1.20', port: 4000 },
      { host: '2001:db8::20', port: 4000 },
    ]);
  });

  it('are limited in number, and observed addresses are kept', () => {
    const own = Array.from({ length: 20 }, (_, i) => `10.0.0.${i + 1}`);
    const candidates = listCandidates(own, 4000, { addresses: [seen], ports: 'consistent' });
    expect(candidates).toHaveLength(PEER_LIMITS.PEER_CANDIDATES_MAX);
    expect(candidates[0]).toEqual(seen);
  });
});
