import { describe, expect, it } from 'vitest';
import { problemOfDomain, refuseDomain } from './own-domain.ts';

const EDGE = 'tunnels.example.com';

describe('a host of its own', () => {
  it.each([
    'db.example.net',
    'DB.Example.NET',
    'db.example.net.',
    '*.example.net',
    'xn--mller-kva.example',
    `${'a.'.repeat(125)}ab`,
    `${'x'.repeat(63)}.example`,
    'example.com',
    'mytunnels.example.com',
    '1.2.3.4.example',
  ])('can be %s', (domain) => {
    expect(problemOfDomain(domain, EDGE)).toBeNull();
  });

  it.each([
    ['', 'it is empty'],
    ['*.', 'it has one label alone'],
    ['*..', 'it is empty'],
    ['.', 'it is empty'],
    ['localhost', 'it has one label alone'],
    ['*.com', 'it has one label alone'],
    ['10.0.0.1', 'it is an address'],
    ['10.1', 'it is an address'],
    ['0x7f.0x1', 'it is an address'],
    ['fe80::1', 'it is an address'],
    ['müller.example', 'only labels of 1 to 63 letters'],
    ['a..example', 'only labels of 1 to 63 letters'],
    ['-a.example', 'only labels of 1 to 63 letters'],
    ['a_b.example', 'only labels of 1 to 63 letters'],
    ['a.*.example', 'only labels of 1 to 63 letters'],
    ['*.*.example', 'only labels of 1 to 63 letters'],
    ['db.example.net..', 'only labels of 1 to 63 letters'],
    [`${'x'.repeat(64)}.example`, 'only labels of 1 to 63 letters'],
    [`${'a.'.repeat(124)}abcdef`, 'it is longer than 253 characters'],
    [EDGE, "it belongs to the edge's own domain"],
    [`Shop.${EDGE.toUpperCase()}.`, "it belongs to the edge's own domain"],
    [`*.${EDGE}`, "it belongs to the edge's own domain"],
  ])('cannot be %j', (domain, problem) => {
    expect(problemOfDomain(domain, EDGE)).toContain(problem);
  });
});

describe('a registration', () => {
  const said = (...args: Parameters<typeof refuseDomain>): string => {
    const fault = refuseDomain(...args);
    return fault === null ? 'taken' : `${fault.code}: ${fault.message}`;
  };

  it('names one or none', () => {
    expect(said('tls', {}, EDGE)).toBe('taken');
    expect(said('tls', { subdomain: 'shop' }, EDGE)).toBe('taken');
    expect(said('tls', { domain: 'db.example.net', subdomain: 'db' }, EDGE)).toBe(
      'TUNNEL_DOMAIN_INVALID: a tunnel has a domain or a subdomain, not both',
    );
  });

  it('goes with a protocol that is reached by name', () => {
    for (const protocol of ['tcp', 'udp', 'p2p'] as const) {
      expect(said(protocol, { domain: 'db.example.net' }, EDGE)).toBe(
        `TUNNEL_DOMAIN_INVALID: a domain goes with http, https and tls tunnels, not with ${protocol}`,
      );
    }
  });

  it('is told that nobody has proven it, in words that break no line', () => {
    for (const protocol of ['http', 'https', 'tls'] as const) {
      expect(said(protocol, { domain: 'db.example.net' }, EDGE)).toBe(
        "TUNNEL_DOMAIN_UNVERIFIED: domain 'db.example.net' is not verified for this account",
      );
    }
    expect(said('tls', { domain: 'a\nb.example' }, EDGE)).toContain("domain 'a?b.example' is not valid");
  });
});
