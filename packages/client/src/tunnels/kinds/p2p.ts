// Tunnels of kind p2p: a name that other clients join. Its relay streams go to the peers of the tunnel, and what comes of them to the local
// service as visitors of tcp and udp tunnels do.
import { CAPABILITY } from '@tunnel/protocol';
import { tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const p2pKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.P2P,
  forward: null,

  /** The name is its owner's choice. */
  preferredEndpoint: () => ({}),
  remember: () => ({}),
};
