// What the edge of a udp or p2p tunnel knows of those who use it, over HTTP: flows, peers, and the dismissal of a peer.
import { createRoute, z } from '@hono/zod-openapi';
import { edgeFlows, edgePeers } from '@tunnel/contract';
import { dismissPeer, listFlows, listPeers, type TunnelEdgeContext } from '../../../services/usage/edge-state.ts';
import type { PlatformApp } from '../../shared/platform-env.ts';
import {
  EXTENSIONS,
  json,
  refused,
  regionAway,
  tunnelIdParam,
  unknownTunnel,
  userRefusals,
  withUser,
} from '../../shared/route-parts.ts';

const tags = ['usage', EXTENSIONS];
const notP2p = refused('The tunnel is not a p2p tunnel.', 'TUNNEL_NOT_P2P', { protocol: 'tcp' });

const listFlowsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/flows',
  tags,
  summary: 'The flows of a udp tunnel, what was dropped, and the path of its datagrams, from the edge that it runs on',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgeFlows, 'As they are now; nothing after the end of the tunnel.'),
    400: refused('The tunnel is not a udp tunnel.', 'TUNNEL_NOT_UDP', { protocol: 'tcp' }),
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

const listPeersRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/peers',
  tags,
  summary: 'The peers of a p2p tunnel: who is joined, over which path, and why',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgePeers, 'As they are now; nobody after the end of the tunnel.'),
    400: notP2p,
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

const dismissPeerRoute = createRoute({
  method: 'delete',
  path: '/usage/tunnels/{id}/peers/{peer_id}',
  tags,
  summary: 'Dismiss a peer: its relay and its direct path are closed, and it may not join again for 60 seconds',
  security: withUser,
  request: {
    params: tunnelIdParam.extend({ peer_id: z.string().meta({ description: 'As the list of peers has it.' }) }),
  },
  responses: {
    204: { description: 'It is dismissed.' },
    400: notP2p,
    ...userRefusals,
    404: refused('No such tunnel or peer, or not yours.', 'P2P_PEER_UNKNOWN'),
    502: regionAway,
  },
});

export const addTunnelPeerRoutes = (app: PlatformApp, deps: TunnelEdgeContext): void => {
  app.openapi(listFlowsRoute, async (context) =>
    context.json(await listFlows(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(listPeersRoute, async (context) =>
    context.json(await listPeers(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(dismissPeerRoute, async (context) => {
    const { id, peer_id } = context.req.valid('param');
    await dismissPeer(deps, context.get('actor'), id, peer_id);
    return context.body(null, 204);
  });
};
