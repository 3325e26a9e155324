// The flows of a udp tunnel over the REST: who talks, what was dropped and why, and how datagrams go between edge and client.
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { type EdgeFlow, edgeFlows } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
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

const listFlowsRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}/flows',
  summary: 'The flows of a udp tunnel, what was dropped, and the path of its datagrams',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgeFlows, 'As they are now.'),
    ...keyRefusals,
    404: refused('No such tunnel, not yours, or not a udp tunnel.'),
  },
});

export const addFlowRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  app.use(listFlowsRoute.getRoutingPath(), requireKey(deps));
  app.openapi(listFlowsRoute, (context) => {
    const tunnel = findTunnel(deps, context.get('caller'), context.req.valid('param').id);
    const { assignedPort: port } = tunnel;
    if (tunnel.protocol !== 'udp' || port === null) throw new Fault('TUNNEL_UNKNOWN');
    const { flows, total, dropped } = deps.udp.flowsOn(port, EDGE_LIMITS.API_FLOWS_SHOWN);
    const nowMs = deps.monotonic();
    return context.json(
      { flows: flows.map((flow) => show(flow, nowMs)), total, dropped, ...deps.datagramPathOf(tunnel) },
      200,
    );
  });
};
