// A hostile edge: while switched on, it joins each relay stream to the publisher of a different pair.

import { loadServerConfig } from '@tunnel/config/server';
import { createEdge, type Edge } from '@tunnel/edge';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';

interface Joined {
  readonly peer: { readonly peerId: string; readonly tunnelId: string };
  resetRelays(reason: { code: 'cancelled'; text: string }): void;
}

/** Replaces the lookup of a stream's join that peer-relays makes in this edge. */
const swap = {
  isOn: false,
  swapped: 0,
  joins: new Map<string, Joined>(),

  pick(joined: Joined | undefined): Joined | undefined {
    if (joined === undefined) return joined;
    swap.joins.set(joined.peer.tunnelId, joined);
    const other = [...swap.joins.values()].find(({ peer }) => peer.tunnelId !== joined.peer.tunnelId);
    if (!swap.isOn || other === undefined) return joined;
    swap.swapped += 1;
    return other;
  },
};
Object.assign(globalThis, { swap });

export const begin = async (token: string): Promise<{ edge: Edge; swap: typeof swap }> => {
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { host: '127.0.0.1', control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'localhost' },
      udp: { ports: [0, 0] },
    },
  });
  const logger = createLogger({ level: 'silent', format: 'json' });
  const edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret(token) });
  await edge.start();
  return { edge, swap };
};
