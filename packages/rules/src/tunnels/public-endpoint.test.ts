import { expect, it } from 'vitest';
import {
  endpointKey,
  endpointLabel,
  endpointOfHost,
  endpointOfProtocol,
  endpointsOfLabel,
  hostOfEndpoint,
  type LeasedEndpoint,
  sameEndpoint,
} from './public-endpoint.ts';
import type { Transport } from './tunnel-protocols.ts';

const on = (transport: string, port: number): LeasedEndpoint => ({
  kind: 'port',
  transport: transport as Transport,
  port,
});

it('the same number on another transport is a different endpoint, as is a name of digits', () => {
  const all = [
    on('tcp', 5000),
    on('udp', 5000),
    on('tcp', 5001),
    { kind: 'name', name: '5000' } as const,
    { kind: 'peer-name', name: '5000', account: null } as const,
    { kind: 'peer-name', name: '5000', account: '' } as const,
    { kind: 'peer-name', name: '5000', account: 'alice' } as const,
    { kind: 'domain', name: '5000' } as const,
  ];
  expect(new Set(all.map(endpointKey)).size).toBe(all.length);
  expect([sameEndpoint(on('tcp', 1), on('tcp', 1)), sameEndpoint(on('tcp', 1), on('udp', 1))]).toEqual([true, false]);
});

const DOMAIN = 'tunnels.example.com';

it('a label maps back to its endpoint exactly', () => {
  for (const [protocol, endpoint] of [
    ['tcp', on('tcp', 20_000)],
    ['udp', on('udp', 20_100)],
    ['http', { kind: 'name', name: 'web' }],
    ['p2p', { kind: 'peer-name', name: 'office-db', account: null }],
    ['http', { kind: 'name', name: '20000' }],
    ['http', { kind: 'domain', name: '*.shop.example.org' }],
  ] as const) {
    expect(endpointsOfLabel(protocol, endpointLabel(protocol, endpoint, DOMAIN), DOMAIN)).toContainEqual(endpoint);
  }
  for (const label of ['020000', '', '0', 'web', '200000']) expect(endpointsOfLabel('tcp', label, DOMAIN)).toEqual([]);
});

it('a label with two parts may be a name nested below another, or a custom domain', () => {
  expect(endpointsOfLabel('http', 'a.shop', DOMAIN)).toEqual([
    { kind: 'name', name: 'a.shop' },
    { kind: 'domain', name: 'a.shop' },
  ]);
});

it('a tls tunnel is identified by its full host, like a tcp tunnel', () => {
  const endpoint = { kind: 'name', name: 'db' } as const;
  expect(endpointLabel('tls', endpoint, DOMAIN)).toBe('db.tunnels.example.com');
  expect(endpointsOfLabel('tcp', 'db.tunnels.example.com', DOMAIN)).toEqual([endpoint]);
  const own = { kind: 'domain', name: 'db.example.com' } as const;
  expect(endpointLabel('tls', own, DOMAIN)).toBe('db.example.com');
  expect(endpointsOfLabel('tcp', 'db.example.com', DOMAIN)).toEqual([own]);
  for (const label of ['db', DOMAIN, `.${DOMAIN}`]) expect(endpointsOfLabel('tcp', label, DOMAIN)).toEqual([]);
  expect(endpointsOfLabel('udp', 'db.tunnels.example.com', DOMAIN)).toEqual([]);
});

it("a host is a name below the server's domain, or a custom domain", () => {
  for (const [host, endpoint] of [
    ['web.tunnels.example.com', { kind: 'name', name: 'web' }],
    ['a.web.tunnels.example.com.', { kind: 'name', name: 'a.web' }],
    ['shop.example.org', { kind: 'domain', name: 'shop.example.org' }],
    ['shop.example.org.', { kind: 'domain', name: 'shop.example.org' }],
    ['mytunnels.example.com', { kind: 'domain', name: 'mytunnels.example.com' }],
  ] as const) {
    expect(endpointOfHost(host, DOMAIN)).toEqual(endpoint);
    expect(hostOfEndpoint(endpoint, DOMAIN)).toBe(host.replace(/\.$/, ''));
  }
});

it("the edge's own host, a host nested too deep and a wildcard match no endpoint", () => {
  for (const host of [DOMAIN, `${DOMAIN}.`, `a.b.c.${DOMAIN}`, `*.a.${DOMAIN}`, '*.example.org', '*']) {
    expect(endpointOfHost(host, DOMAIN)).toEqual({ kind: 'domain', name: '' });
  }
});

it('an endpoint that passes TLS through is marked, but equals the endpoint without TLS passthrough', () => {
  for (const kind of ['name', 'domain'] as const) {
    const endpoint = { kind, name: 'db' };
    expect(endpointOfProtocol('tls', endpoint)).toEqual({ ...endpoint, passesTls: true });
    expect(endpointOfProtocol('http', endpoint)).toEqual(endpoint);
    expect(sameEndpoint(endpointOfProtocol('tls', endpoint), endpoint)).toBe(true);
  }
  expect(endpointOfProtocol('tls', { kind: 'member', groupId: 'grp_1' })).toEqual({ kind: 'member', groupId: 'grp_1' });
});
