// Tunnels over the REST: the list, one of them, and its end.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { type EdgeTunnel, edgeTunnel, edgeTunnels, showProtocol } from '@tunnel/contract';
import { maySee } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Tunnel } from '../routing/tunnel.ts';
import { presentSummary } from './policy-routes.ts';
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

const listTunnelsRoute = createRoute({
  method: 'get',
  path: '/api/tunnels',
  summary: 'The living tunnels: all of them for the admin token, the own ones for an API key',
  security: withKey,
  responses: { 200: json(edgeTunnels, 'In the order of their registration.'), ...keyRefusals },
});

const showTunnelRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}',
  summary: 'One tunnel',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgeTunnel, 'The tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

const closeTunnelRoute = createRoute({
  method: 'delete',
  path: '/api/tunnels/{id}',
  summary: 'Close a tunnel: its client is told and does not register it again; open connections finish',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    204: { description: 'It is closed.' },
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

export const addTunnelRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { tunnels, region } = deps;
  const collection = listTunnelsRoute.getRoutingPath();
  const single = showTunnelRoute.getRoutingPath();
  for (const path of [collection, single]) app.use(path, requireKey(deps));

  app.openapi(listTunnelsRoute, (context) => {
    const caller = context.get('caller');
    const seen = [...tunnels.values()].filter((tunnel) => maySee(caller, tunnel.owner));
    return context.json(
      seen.map((tunnel) => presentTunnel(tunnel, region.id)),
      200,
    );
  });
  app.openapi(showTunnelRoute, (context) => {
    const tunnel = findTunnel(deps, context.get('caller'), context.req.valid('param').id);
    return context.json(presentTunnel(tunnel, region.id), 200);
  });
  app.openapi(closeTunnelRoute, (context) => {
    const caller = context.get('caller');
    const { tunnelId } = findTunnel(deps, caller, context.req.valid('param').id);
    const reason = caller.kind === 'operator' ? 'TUNNEL_CLOSED_BY_OPERATOR' : 'TUNNEL_CLOSED_BY_ACCOUNT';
    if (!deps.closeTunnel(tunnelId, new Fault(reason))) throw new Fault('TUNNEL_UNKNOWN');
    return context.body(null, 204);
  });
};

const presentTunnel = (tunnel: Tunnel, regionId: string): EdgeTunnel => ({
  tunnel_id: tunnel.tunnelId,
  session_id: tunnel.sessionId,
  name: tunnel.name,
  protocol: showProtocol(tunnel.protocol),
  label: tunnel.label,
  public_url: tunnel.publicUrl,
  assigned_port: tunnel.assignedPort,
  group: tunnel.group?.name ?? null,
  healthy: tunnel.health.healthy,
  client_addr: tunnel.clientAddr,
  ...(tunnel.clientName === undefined ? {} : { client_name: tunnel.clientName }),
  region_id: regionId,
  request_count: tunnel.counters.requests,
  bytes_proxied: tunnel.counters.bytes,
  connected_since: new Date(tunnel.connectedSince).toISOString(),
  policy: presentSummary(tunnel.policy.current),
});
