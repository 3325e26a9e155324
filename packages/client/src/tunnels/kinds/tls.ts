// Tunnels of kind tls: a public name on the edge's https port. Visitors shake hands with the local service itself; what passes are bytes, as of tcp.
import { CAPABILITY } from '@tunnel/protocol';
import { tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const tlsKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.TLS,
  /** The owner chooses the host, so nothing has to be remembered. */
  preferredEndpoint: () => ({}),
  remember: () => ({}),
};
