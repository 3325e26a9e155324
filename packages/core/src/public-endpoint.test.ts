import { expect, it } from 'vitest';
import { endpointKey, endpointLabel, endpointOfLabel, type LeasedEndpoint, sameEndpoint } from './public-endpoint.ts';
import type { Transport } from './tunnel-protocols.ts';

const on = (transport: string, port: number): LeasedEndpoint => ({
  kind: 'port',
  transport: transport as Transport,
  port,
});

it('the same number of another transport is another endpoint, and so is a name of digits', () => {
  const all = [
    on('tcp', 5000),
    on('udp', 5000),
    on('tcp', 5001),
    { kind: 'name', name: '5000' } as const,
    { kind: 'peer-name', name: '5000' } as const,
  ];
  expect(new Set(all.map(endpointKey)).size).toBe(all.length);
  expect([sameEndpoint(on('tcp', 1), on('tcp', 1)), sameEndpoint(on('tcp', 1), on('udp', 1))]).toEqual([true, false]);
});

const DOMAIN = 'tunnels.example.com';

it('a label leads back to its endpoint, to the letter', () => {
  for (const [protocol, endpoint] of [
    ['tcp', on('tcp', 20_000)],
    ['udp', on('udp', 20_100)],
    ['http', { kind: 'name', name: 'web' }],
    ['p2p', { kind: 'peer-name', name: 'office-db' }],
    ['http', { kind: 'name', name: '20000' }],
  ] as const) {
    expect(endpointOfLabel(protocol, endpointLabel(protocol, endpoint, DOMAIN), DOMAIN)).toEqual(endpoint);
  }
  for (const label of ['020000', '', '0', 'web', '200000']) expect(endpointOfLabel('tcp', label, DOMAIN)).toBeNull();
});

it('a tls tunnel is known by its whole host, as one of tcp', () => {
  const endpoint = { kind: 'name', name: 'db' } as const;
  expect(endpointLabel('tls', endpoint, DOMAIN)).toBe('db.tunnels.example.com');
  expect(endpointOfLabel('tcp', 'db.tunnels.example.com', DOMAIN)).toEqual(endpoint);
  for (const label of ['db', DOMAIN, `.${DOMAIN}`, 'db.example.com']) {
    expect(endpointOfLabel('tcp', label, DOMAIN)).toBeNull();
  }
  expect(endpointOfLabel('udp', 'db.tunnels.example.com', DOMAIN)).toBeNull();
});
