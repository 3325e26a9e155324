// Tunnels of kind tls: a public name on the edge's https port. Visitors perform the TLS handshake with the local service, so the client
// forwards bytes as for tcp.
import { CAPABILITY } from '@tunnel/protocol';
import { tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const tlsKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.TLS,
  /** The owner chooses the tls tunnel's host, so no name or port is remembered. */
  preferredEndpoint: () => ({}),
  remember: () => ({}),
};
