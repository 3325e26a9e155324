// REST routes for tunnels: list tunnels, show a tunnel, and close a tunnel.
import { type EdgeTunnel, edgeTunnel, edgeTunnels, showProtocol } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { maySee } from '@tunnel/rules/tunnels';
import type { Tunnel } from '../routing/tunnel.ts';
import { presentSummary } from './policy-routes.ts';
import { findTunnel, json, type KeyedRoutes, keyedRoute, type RestDependencies, tunnelRoute } from './rest-context.ts';

const listTunnelsRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels',
  summary: 'List the open tunnels. An API key sees tunnels of its account, the admin token sees all tunnels',
  responses: { 200: json(edgeTunnels, 'The tunnels, in the order of registration.') },
});

const showTunnelRoute = tunnelRoute({
  method: 'get',
  path: '/api/tunnels/{id}',
  summary: 'One tunnel',
  responses: { 200: json(edgeTunnel, 'The tunnel.') },
});

const closeTunnelRoute = tunnelRoute({
  method: 'delete',
  path: '/api/tunnels/{id}',
  summary: 'Close a tunnel. Open connections finish, and the client does not open the tunnel again',
  responses: { 204: { description: 'The tunnel was closed.' } },
});

export const addTunnelRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  const { tunnels, region } = deps;
  routes.add(listTunnelsRoute, (context) => {
    const caller = context.get('caller');
    const seen = [...tunnels.values()].filter((tunnel) => maySee(caller, tunnel.owner));
    return context.json(
      seen.map((tunnel) => presentTunnel(tunnel, region.id)),
      200,
    );
  });
  routes.add(showTunnelRoute, (context) => {
    const tunnel = findTunnel(deps, context);
    return context.json(presentTunnel(tunnel, region.id), 200);
  });
  routes.add(closeTunnelRoute, (context) => {
    const caller = context.get('caller');
    const { tunnelId } = findTunnel(deps, context);
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
