import { domainToASCII } from 'node:url';
import { describe, expect, it } from 'vitest';
import { wantedDomain } from './own-domain.rules.ts';

const FACTS = { toAscii: domainToASCII, operatorsHosts: ['tunnels.example.com'] };

describe('the custom domain of a registration', () => {
  const said = (...[protocol, fields]: [Parameters<typeof wantedDomain>[0], Parameters<typeof wantedDomain>[1]]) => {
    const domain = wantedDomain(protocol, fields, FACTS);
    return domain instanceof Error ? `${domain.code}: ${domain.message}` : domain;
  };

  it('can be absent, a hostname or a wildcard, but not combined with a subdomain', () => {
    expect(said('tls', {})).toBeNull();
    expect(said('tls', { subdomain: 'shop' })).toBeNull();
    for (const protocol of ['http', 'https', 'tls'] as const) {
      expect(said(protocol, { domain: 'DB.Example.NET.' })).toBe('db.example.net');
      expect(said(protocol, { domain: '*.example.net' })).toBe('*.example.net');
      expect(said(protocol, { domain: 'Müller.example' })).toBe('xn--mller-kva.example');
    }
    expect(said('tls', { domain: 'db.example.net', subdomain: 'db' })).toBe(
      'TUNNEL_DOMAIN_INVALID: a tunnel can have a domain or a subdomain, not both',
    );
  });

  it('is refused for tcp, udp and p2p tunnels', () => {
    for (const protocol of ['tcp', 'udp', 'p2p'] as const) {
      expect(said(protocol, { domain: 'db.example.net' })).toBe(
        `TUNNEL_DOMAIN_INVALID: domains are for http, https and tls tunnels, not for ${protocol}`,
      );
    }
  });

  it.each([
    ['', 'it is not a host name'],
    ['localhost', 'a domain needs at least two labels'],
    ['*.com', 'a domain needs at least two labels'],
    ['10.0.0.1', 'it is an address'],
    ['0x7f.0x1', 'it is an address'],
    ['fe80::1', 'it is not a host name'],
    ['a_b.example', 'it is not a host name'],
    ['*.*.example', 'it is not a host name'],
    [`${'a.'.repeat(124)}abcdef`, 'it is longer than 253 characters'],
    ['tunnels.example.com', 'names of tunnels.example.com belong to this server'],
    ['Shop.TUNNELS.example.com.', 'names of tunnels.example.com belong to this server'],
    ['a\nb.example', 'it is not a host name'],
  ])('is refused with a single-line reason: %j', (domain, problem) => {
    const text = String(said('tls', { domain }));
    expect(text).toContain(problem);
    expect(text).toMatch(/^TUNNEL_DOMAIN_INVALID: domain '[^\p{Cc}]*' is not valid: /u);
  });
});
