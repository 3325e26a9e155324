// Tunnels of kind tcp: a public port, and bytes as they come; before them, where it was asked for, a PROXY protocol header.

import type { StreamHead } from '@tunnel/protocol';
import { proxyHeader, proxyLine, readHostPort, type SocketAddress } from '@tunnel/rules/net';
import { forwardBytes } from '../../local/local-service.ts';
import type { ForwardedTunnel, TunnelKind } from './tunnel-kind.ts';

export const tcpKind: TunnelKind = {
  carriesRequests: false,
  localScheme: '',
  defaultPort: null,
  takesH2c: false,
  localTls: () => null,
  forwardFlow: null,
  capability: null,
  keys: ['remotePort', 'localSocket', 'proxyProtocol'],

  endpointFields: ({ proxyProtocol, ...spec }, previous) => ({
    ...portFields(spec, previous),
    ...proxyFields(proxyProtocol),
  }),

  remember: ({ assigned_port: assignedPort }) => (assignedPort === undefined ? {} : { assignedPort }),

  forward: (stream, tunnel, context) => {
    const { target, traffic } = tunnel;
    const preface = prefaceFor(tunnel, context.head);
    return forwardBytes(stream, { target, traffic, preface, visitorEnd: (visitor) => visitor }, context);
  },
};

/** Exactly the port that was given; else what the edge once chose is preferred. */
export const portFields: TunnelKind['endpointFields'] = ({ remotePort }, { assignedPort }) => {
  if (remotePort !== undefined) return { remote_port: remotePort };
  return assignedPort === undefined ? {} : { preferred_port: assignedPort };
};

/** With it each stream names the public address that its visitor reached. */
export const proxyFields = (version: 'v1' | 'v2' | undefined) =>
  version === undefined ? {} : { proxy_protocol: version };

const prefaceFor = (
  { spec, publicUrl }: Pick<ForwardedTunnel, 'spec' | 'publicUrl'>,
  { visitor, publicAddress }: StreamHead,
): Buffer | null => {
  if (spec.proxyProtocol === undefined) return null;
  const from = readHostPort(visitor);
  const reached = (publicAddress === undefined ? null : readHostPort(publicAddress)) ?? reachedAt(publicUrl);
  return spec.proxyProtocol === 'v1'
    ? Buffer.from(proxyLine(from, reached), 'latin1')
    : Buffer.from(proxyHeader(from, reached, 'tcp'));
};

/** As the edge knows itself: by its domain, which may be a name. */
export const reachedAt = (publicUrl: string): SocketAddress =>
  readHostPort(publicUrl.slice(publicUrl.indexOf('://') + 3)) ?? { host: '', port: 0 };
