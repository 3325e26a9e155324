// Usage over HTTP: sums, days, the log, and the caller's load-balanced pools. What the edge of a tunnel knows of it is in tunnel-routes.ts.
import { z } from '@hono/zod-openapi';
import {
  CHART_DAYS,
  platformPools,
  shownProtocol,
  TUNNEL_LOG_LIMIT,
  TUNNEL_LOG_OFFSET,
  tunnelLog,
  tunnelLogEntry,
  tunnelState,
  unguardedTunnels,
  usageChart,
  usageRegions,
  usageSummary,
} from '@tunnel/contract';
import { choiceParameter, integerParameter } from '@tunnel/http-shell';
import { type GroupEdges, listGroups, listRegions, type TunnelEdges } from '../../../services/usage/edge-state.ts';
import { type LivingTunnelEdges, listUnguarded } from '../../../services/usage/living-tunnels.ts';
import { findTunnel, listTunnels } from '../../../services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../../../services/usage/usage-sums.ts';
import type { PlatformApp, UserRouteContext } from '../../shared/platform-env.ts';
import { EXTENSIONS, json, refused, userRoutes } from '../../shared/route-parts.ts';
import { addTunnelRoutes, tunnelIdParam, unknownTunnel } from './tunnel-routes.ts';

const userRoute = userRoutes('usage');
const extensionRoute = userRoutes('usage', EXTENSIONS);
const poolRoute = userRoutes('load balancing');

const outOfRange = (field: string) =>
  refused('A number is not an integer of its range.', 'API_BAD_REQUEST', {
    reason: `${field} must be an integer from 1 to 100, got '0'`,
  });

const summaryRoute = userRoute('get', '/usage', {
  summary: 'Tunnels open now, and the sums of 30 days',
  responses: { 200: json(usageSummary, 'Days are those of UTC.') },
});

const chartRoute = userRoute('get', '/usage/chart', {
  summary: 'Usage by day',
  request: { query: z.object({ days: integerParameter('days', CHART_DAYS, 'How many days, today among them.') }) },
  responses: { 200: json(usageChart, 'One point a day, oldest first.'), 400: outOfRange('days') },
});

const listTunnelsRoute = userRoute('get', '/usage/tunnels', {
  summary: 'The log of your tunnels, newest first',
  request: {
    query: z.object({
      limit: integerParameter('limit', TUNNEL_LOG_LIMIT, 'How many at most.'),
      offset: integerParameter('offset', TUNNEL_LOG_OFFSET, 'How many are passed over.'),
      protocol: choiceParameter('protocol', shownProtocol.options, 'Only those of this protocol.'),
      state: choiceParameter('state', tunnelState.options, 'Only those that live, or only those that have ended.'),
    }),
  },
  responses: { 200: json(tunnelLog, 'A page of it.'), 400: outOfRange('limit') },
});

const regionsRoute = extensionRoute('get', '/usage/regions', {
  summary: 'The regions that are there now, and how clients and visitors come to them',
  responses: { 200: json(usageRegions, 'By their id.') },
});

const unguardedRoute = extensionRoute('get', '/usage/unguarded', {
  summary: 'Your living tunnels that no rule guards: whoever has the address comes in',
  responses: { 200: json(unguardedTunnels, 'As their edges know them now.') },
});

const showTunnelRoute = userRoute('get', '/usage/tunnels/{id}', {
  summary: 'One tunnel of the log',
  request: { params: tunnelIdParam },
  responses: { 200: json(tunnelLogEntry, 'The entry.'), 404: unknownTunnel },
});

export interface UsageRouteDeps extends UserRouteContext {
  readonly edges: TunnelEdges & Pick<LivingTunnelEdges, 'tunnels'>;
}

export const addUsageRoutes = (app: PlatformApp, deps: UsageRouteDeps): void => {
  app.use('/usage/*', deps.requireUser);
  app.openapi(summaryRoute, async (context) => context.json(await summarizeUsage(deps, context.get('actor')), 200));
  app.openapi(chartRoute, async (context) =>
    context.json(await chartUsage(deps, context.get('actor'), context.req.valid('query').days), 200),
  );
  app.openapi(listTunnelsRoute, async (context) =>
    context.json(await listTunnels(deps, context.get('actor'), context.req.valid('query')), 200),
  );
  app.openapi(regionsRoute, async (context) => context.json(await listRegions(deps), 200));
  app.openapi(unguardedRoute, async (context) => context.json(await listUnguarded(deps, context.get('actor')), 200));
  app.openapi(showTunnelRoute, async (context) =>
    context.json(await findTunnel(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  addTunnelRoutes(app, deps);
};

const groupsRoute = poolRoute('get', '/load-balancing/groups', {
  summary: 'The live state of your pools, gathered from all edge regions',
  responses: {
    200: json(platformPools, 'Groups with a living tunnel of yours. A region that does not answer is a warning.'),
  },
});

export interface LoadBalancingRouteDeps extends UserRouteContext {
  readonly edges: GroupEdges;
}

/** The caller's load-balanced pools over HTTP. */
export const addLoadBalancingRoutes = (app: PlatformApp, deps: LoadBalancingRouteDeps): void => {
  app.use('/load-balancing/*', deps.requireUser);
  app.openapi(groupsRoute, async (context) => context.json(await listGroups(deps, context.get('actor')), 200));
};
