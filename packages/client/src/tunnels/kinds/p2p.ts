// Tunnels of kind p2p: a name that other clients join. Its relay streams go to the peers of the tunnel, and what comes of them to the local
// service as visitors of tcp and udp tunnels do.
import { CAPABILITY } from '@tunnel/protocol';
import { p2pSecretHash, p2pSecretOf } from './p2p-secret.ts';
import { tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const p2pKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.P2P,
  keys: ['p2pName', 'secret', 'service', 'allow', 'direct'],
  forward: null,

  endpointFields: ({ p2pName, secret, service, allow }) => ({
    ...(p2pName === undefined ? {} : { p2p_name: p2pName.toLowerCase() }),
    p2p_secret_hash: p2pSecretHash(p2pSecretOf(secret)),
    p2p_service: service ?? 'tcp',
    p2p_allow: allow ?? 'account',
  }),

  /** The name is its owner's choice. */
  remember: () => ({}),
};
