import { tunnelProtocol } from '@tunnel/protocol';
import { specOfLibrary } from '@tunnel/tunnel-spec';
import { expect, it } from 'vitest';
import { kindOf, protocolTraits } from './kinds.ts';

it('every protocol has a tunnel kind', () => {
  for (const protocol of tunnelProtocol.options) expect(kindOf(protocol)).toBeDefined();
});

it.each([
  ['http', { carriesRequests: true, localScheme: '' }],
  ['https', { carriesRequests: true, localScheme: 'https://' }],
  ['tcp', { carriesRequests: false, localScheme: '' }],
  ['udp', { carriesRequests: false, localScheme: '' }],
] as const)('the tunnel kind has the right traits for %s', (protocol, traits) => {
  expect(protocolTraits(protocol)).toMatchObject(traits);
});

it.each([
  ['https', undefined, { verify: true }],
  ['https', false, { verify: false }],
  ['http', false, null],
  ['tcp', false, null],
] as const)(
  'certificate checks of the local service for %s with localTlsVerify %s',
  (protocol, localTlsVerify, tls) => {
    const spec = specOfLibrary({ protocol, localPort: 1, localTlsVerify });
    expect(kindOf(protocol).localTls(spec)).toEqual(tls);
  },
);

it('a tunnel kind remembers the endpoint assigned by the edge', () => {
  const answer = { type: 'TunnelRegistered', request_id: 'r', tunnel_id: 't', name: 'n', public_url: '', label: 'web' };
  expect(kindOf('http').remember({ ...answer, protocol: 'http' } as never, { proto: 'http' })).toEqual({
    assignedSubdomain: 'web',
  });
  // A domain chosen by the owner is not remembered, because the spec requests the domain anyway.
  expect(kindOf('http').remember({ ...answer, label: 'a.b' } as never, { proto: 'http', domain: 'a.b' })).toEqual({});
  expect(kindOf('tcp').remember({ ...answer, protocol: 'tcp', assigned_port: 5 } as never, { proto: 'http' })).toEqual({
    assignedPort: 5,
  });
});
