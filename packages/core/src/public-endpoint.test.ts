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

it('a label leads back to its endpoint, to the letter', () => {
  for (const [protocol, endpoint] of [
    ['tcp', on('tcp', 20_000)],
    ['udp', on('udp', 20_100)],
    ['http', { kind: 'name', name: 'web' }],
    ['p2p', { kind: 'peer-name', name: 'office-db' }],
    ['https', { kind: 'name', name: '20000' }],
  ] as const) {
    expect(endpointOfLabel(protocol, endpointLabel(endpoint))).toEqual(endpoint);
  }
  for (const label of ['020000', '', '0', 'web', '200000']) expect(endpointOfLabel('tcp', label)).toBeNull();
});
