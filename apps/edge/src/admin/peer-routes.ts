// The peers of a p2p tunnel over the REST: who has joined and how each one's connections go, and the dismissal of one.
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { type EdgePeer, edgePeers } from '@tunnel/contract';
import type { Owner } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { JoinedPeer } from '../ingress/p2p/joined-peer.ts';
import { EDGE_LIMITS } from '../limits.ts';
import {
  findTunnel,
  json,
  keyRefusals,
  type RestDependencies,
  type RestEnv,
  refused,
  requireKey,
  tunnelIdParam,
  withKey,
} from './rest-context.ts';

const listPeersRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}/peers',
  summary: 'The subscribers of a p2p tunnel, and how their connections go',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgePeers, 'As they are now.'),
    ...keyRefusals,
    404: refused('No such tunnel, not yours, or not a p2p tunnel.'),
  },
});

const dismissPeerRoute = createRoute({
  method: 'delete',
  path: '/api/tunnels/{id}/peers/{peer_id}',
  summary: 'Dismiss a subscriber: its connections end, and its running client finds nothing for 60 s',
  security: withKey,
  request: { params: tunnelIdParam.extend({ peer_id: z.string().meta({ description: 'The peer_id.' }) }) },
  responses: {
    204: { description: 'It is dismissed.' },
    ...keyRefusals,
    404: refused('No such tunnel, not yours, not a p2p tunnel, or no such peer.'),
  },
});

export const addPeerRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  for (const route of [listPeersRoute, dismissPeerRoute]) app.use(route.getRoutingPath(), requireKey(deps));

  app.openapi(listPeersRoute, (context) => {
    const joined = deps.peers.of(p2pTunnelId(deps, context.get('caller'), context.req.valid('param').id));
    const peers = joined.slice(0, EDGE_LIMITS.API_PEERS_SHOWN).map(show);
    return context.json({ peers, total: joined.length }, 200);
  });
  app.openapi(dismissPeerRoute, (context) => {
    const { id, peer_id } = context.req.valid('param');
    const tunnelId = p2pTunnelId(deps, context.get('caller'), id);
    if (!deps.peers.dismiss(tunnelId, peer_id)) throw new Fault('P2P_PEER_UNKNOWN');
    return context.body(null, 204);
  });
};

const p2pTunnelId = (deps: RestDependencies, caller: Owner, id: string): string => {
  const { tunnelId, protocol } = findTunnel(deps, caller, id);
  if (protocol !== 'p2p') throw new Fault('TUNNEL_UNKNOWN');
  return tunnelId;
};

const show = ({ peer, clientAddr, path, reason, rttMs, since, relayedBytes, directBytes }: JoinedPeer): EdgePeer => ({
  peer_id: peer.peerId,
  client_addr: clientAddr,
  service: peer.service,
  path,
  reason,
  rtt_ms: rttMs,
  connected_since: new Date(since).toISOString(),
  relayed_bytes: relayedBytes,
  direct_bytes: directBytes,
});
