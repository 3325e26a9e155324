// Tunnels of kind tcp: a public port and unmodified bytes, optionally after a PROXY protocol header.

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

  preferredEndpoint: ({ remote_port }, { assignedPort }) =>
    remote_port !== undefined || assignedPort === undefined ? {} : { preferred_port: assignedPort },

  remember: ({ assigned_port: assignedPort }) => (assignedPort === undefined ? {} : { assignedPort }),

  forward: (stream, tunnel, context) => {
    const { target, traffic } = tunnel;
    const preface = prefaceFor(tunnel, context.head);
    return forwardBytes(stream, { target, traffic, preface, visitorEnd: (visitor) => visitor }, context);
  },
};

const prefaceFor = (
  { asked, publicUrl }: Pick<ForwardedTunnel, 'asked' | 'publicUrl'>,
  { visitor, publicAddress }: StreamHead,
): Buffer | null => {
  if (asked.proxy_protocol === undefined) return null;
  const from = readHostPort(visitor);
  const reached = (publicAddress === undefined ? null : readHostPort(publicAddress)) ?? reachedAt(publicUrl);
  return asked.proxy_protocol === 'v1'
    ? Buffer.from(proxyLine(from, reached), 'latin1')
    : Buffer.from(proxyHeader(from, reached, 'tcp'));
};

/** Returns the public address of a tcp tunnel, which may contain a host name. */
export const reachedAt = (publicUrl: string): SocketAddress =>
  readHostPort(publicUrl.slice(publicUrl.indexOf('://') + 3)) ?? { host: '', port: 0 };
