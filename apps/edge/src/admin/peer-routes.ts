// REST routes for the subscribers of a p2p tunnel: list the subscribers and the paths of their connections, and disconnect a subscriber.
import { z } from '@hono/zod-openapi';
import { type EdgePeer, edgePeers } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import type { JoinedPeer } from '../ingress/p2p/joined-peer.ts';
import {
  findTunnel,
  json,
  type KeyedRoutes,
  keyedRoute,
  type RestDependencies,
  type RestEnv,
  refused,
  tunnelIdParam,
  tunnelRoute,
} from './rest-context.ts';

/**
 * Maximum peers in the response of GET /api/tunnels/:id/peers. The first peers are shown. The default of `[p2p] peers_per_tunnel` is 100.
 */
const API_PEERS_SHOWN = 1000;

const listPeersRoute = tunnelRoute({
  method: 'get',
  path: '/api/tunnels/{id}/peers',
  summary: 'List the subscribers of a p2p tunnel and the paths of their connections',
  responses: {
    200: json(edgePeers, 'Current subscribers.'),
    404: refused('No such p2p tunnel in your account.'),
  },
});

const dismissPeerRoute = keyedRoute({
  method: 'delete',
  path: '/api/tunnels/{id}/peers/{peer_id}',
  summary: 'Disconnect a subscriber and block the running client for 60 s',
  request: { params: tunnelIdParam.extend({ peer_id: z.string().meta({ description: 'The peer_id.' }) }) },
  responses: {
    204: { description: 'The subscriber was disconnected.' },
    404: refused('No such p2p tunnel or peer in your account.'),
  },
});

export const addPeerRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.add(listPeersRoute, (context) => {
    const joined = deps.peers.of(p2pTunnelId(deps, context));
    const peers = joined.slice(0, API_PEERS_SHOWN).map(show);
    return context.json({ peers, total: joined.length }, 200);
  });
  routes.add(dismissPeerRoute, (context) => {
    const { peer_id } = context.req.valid('param');
    if (!deps.peers.dismiss(p2pTunnelId(deps, context), peer_id)) throw new Fault('P2P_PEER_UNKNOWN');
    return context.body(null, 204);
  });
};

const p2pTunnelId = (deps: RestDependencies, context: Context<RestEnv>): string => {
  const { tunnelId, protocol } = findTunnel(deps, context);
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
