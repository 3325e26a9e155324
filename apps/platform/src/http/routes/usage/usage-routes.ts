// Routes for usage: totals, daily usage, the tunnel log, and the caller's groups. Routes answered by a tunnel's edge are in
// tunnel-routes.ts.
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
  refused('A number is not an integer or out of range.', 'API_BAD_REQUEST', {
    reason: `${field} must be an integer from 1 to 100, got '0'`,
  });

const summaryRoute = userRoute('get', '/usage', {
  summary: 'Get the open tunnels and the totals of the last 30 days',
  responses: { 200: json(usageSummary, 'The usage summary. Days are in UTC.') },
});

const chartRoute = userRoute('get', '/usage/chart', {
  summary: 'Get usage by day',
  request: { query: z.object({ days: integerParameter('days', CHART_DAYS, 'The number of days, including today.') }) },
  responses: { 200: json(usageChart, 'One point per day, oldest first.'), 400: outOfRange('days') },
});

const listTunnelsRoute = userRoute('get', '/usage/tunnels', {
  summary: 'List the tunnel log, newest first',
  request: {
    query: z.object({
      limit: integerParameter('limit', TUNNEL_LOG_LIMIT, 'The maximum number of entries.'),
      offset: integerParameter('offset', TUNNEL_LOG_OFFSET, 'The number of entries to skip.'),
      protocol: choiceParameter('protocol', shownProtocol.options, 'Only tunnels with this protocol.'),
      state: choiceParameter('state', tunnelState.options, 'Only open tunnels, or only closed tunnels.'),
    }),
  },
  responses: { 200: json(tunnelLog, 'A page of the tunnel log.'), 400: outOfRange('limit') },
});

const regionsRoute = extensionRoute('get', '/usage/regions', {
  summary: 'List the available regions with their addresses for clients and visitors',
  responses: { 200: json(usageRegions, 'The regions, ordered by id.') },
});

const unguardedRoute = extensionRoute('get', '/usage/unguarded', {
  summary: 'List open tunnels without a policy, which anyone with the URL can visit',
  responses: { 200: json(unguardedTunnels, 'The current state reported by the edges.') },
});

const showTunnelRoute = userRoute('get', '/usage/tunnels/{id}', {
  summary: 'Get an entry of the tunnel log',
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
  summary: "Get the live state of the account's groups in every region",
  responses: {
    200: json(
      platformPools,
      'The groups with an open tunnel of the account. A region that does not respond is listed as a warning.',
    ),
  },
});

export interface LoadBalancingRouteDeps extends UserRouteContext {
  readonly edges: GroupEdges;
}

/** Adds the routes for the caller's groups (load-balanced tunnels). */
export const addLoadBalancingRoutes = (app: PlatformApp, deps: LoadBalancingRouteDeps): void => {
  app.use('/load-balancing/*', deps.requireUser);
  app.openapi(groupsRoute, async (context) => context.json(await listGroups(deps, context.get('actor')), 200));
};
