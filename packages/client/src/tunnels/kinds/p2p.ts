// Tunnels of kind p2p: a name for other clients to join. Relay streams go to the tunnel's peers. Streams from peers reach the local service
// like visitors of tcp and udp tunnels.
import { CAPABILITY } from '@tunnel/protocol';
import { tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const p2pKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.P2P,
  forward: null,

  /** The owner chooses the p2p tunnel's name, so no name or port is remembered. */
  preferredEndpoint: () => ({}),
  remember: () => ({}),
};
