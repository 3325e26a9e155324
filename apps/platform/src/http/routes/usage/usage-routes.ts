// Usage over HTTP: sums, days, the log, what the edge of a tunnel knows of it, and the caller's load-balanced pools.
import { createRoute, z } from '@hono/zod-openapi';
import {
  CAPTURE_CURSOR_MAX,
  CAPTURE_LIST_LIMIT,
  CAPTURES_KEPT_MAX,
  CHART_DAYS,
  capturedRequest,
  captureList,
  healthEvents,
  platformPools,
  replayEdit,
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
import { choiceParameter, cursorParameter, emptyBodyIsNone, integerParameter } from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import {
  type GroupEdges,
  listGroups,
  listHealthEvents,
  listRegions,
  listRequests,
  replayRequest,
  type TunnelEdges,
} from '../../../services/usage/edge-state.ts';
import { type LivingTunnelEdges, listUnguarded } from '../../../services/usage/living-tunnels.ts';
import { findTunnel, listTunnels } from '../../../services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../../../services/usage/usage-sums.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../../shared/platform-env.ts';
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
import { addTunnelCloseRoute } from './tunnel-close-route.ts';
import { addTunnelPeerRoutes } from './tunnel-peer-routes.ts';
import { addTunnelPolicyRoutes } from './tunnel-policy-routes.ts';

const tags = ['usage'];
const extensions = ['usage', EXTENSIONS];

const outOfRange = (field: string) =>
  refused('A number is not an integer of its range.', 'API_BAD_REQUEST', {
    reason: `${field} must be an integer from 1 to 100, got '0'`,
  });

const summaryRoute = createRoute({
  method: 'get',
  path: '/usage',
  tags,
  summary: 'Tunnels open now, and the sums of 30 days',
  security: withUser,
  responses: { 200: json(usageSummary, 'Days are those of UTC.'), ...userRefusals },
});

const chartRoute = createRoute({
  method: 'get',
  path: '/usage/chart',
  tags,
  summary: 'Usage by day',
  security: withUser,
  request: { query: z.object({ days: integerParameter('days', CHART_DAYS, 'How many days, today among them.') }) },
  responses: { 200: json(usageChart, 'One point a day, oldest first.'), 400: outOfRange('days'), ...userRefusals },
});

const listTunnelsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels',
  tags,
  summary: 'The log of your tunnels, newest first',
  security: withUser,
  request: {
    query: z.object({
      limit: integerParameter('limit', TUNNEL_LOG_LIMIT, 'How many at most.'),
      offset: integerParameter('offset', TUNNEL_LOG_OFFSET, 'How many are passed over.'),
      protocol: choiceParameter('protocol', shownProtocol.options, 'Only those of this protocol.'),
      state: choiceParameter('state', tunnelState.options, 'Only those that live, or only those that have ended.'),
    }),
  },
  responses: { 200: json(tunnelLog, 'A page of it.'), 400: outOfRange('limit'), ...userRefusals },
});

const regionsRoute = createRoute({
  method: 'get',
  path: '/usage/regions',
  tags: extensions,
  summary: 'The regions that are there now, and how clients and visitors come to them',
  security: withUser,
  responses: { 200: json(usageRegions, 'By their id.'), ...userRefusals },
});

const unguardedRoute = createRoute({
  method: 'get',
  path: '/usage/unguarded',
  tags: extensions,
  summary: 'Your living tunnels that no rule guards: whoever has the address comes in',
  security: withUser,
  responses: { 200: json(unguardedTunnels, 'As their edges know them now.'), ...userRefusals },
});

const showTunnelRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}',
  tags,
  summary: 'One tunnel of the log',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: { 200: json(tunnelLogEntry, 'The entry.'), ...userRefusals, 404: unknownTunnel },
});

const listRequestsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/requests',
  tags,
  summary: `The last ${CAPTURES_KEPT_MAX} requests of an http tunnel, page by page, from the edge that it ran on`,
  security: withUser,
  request: {
    params: tunnelIdParam,
    query: z.object({
      limit: integerParameter('limit', CAPTURE_LIST_LIMIT, 'How many at most.'),
      cursor: cursorParameter(
        'cursor',
        CAPTURE_CURSOR_MAX,
        'The next_cursor of an earlier answer: the next older requests.',
      ),
      answered: choiceParameter(
        'answered',
        ['true', 'false'],
        'true: only those that a rule of the tunnel answered. false: only those that its service got.',
      ),
    }),
  },
  responses: {
    200: json(
      captureList,
      'Newest first; the shape follows the edge and may grow. Nothing when they are no longer kept.',
    ),
    400: refused(
      'The limit is not in its range, the cursor is none, or the tunnel is not an http tunnel.',
      'TUNNEL_NOT_HTTP',
      {
        protocol: 'tcp',
      },
    ),
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

const healthEventsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/health-events',
  tags: extensions,
  summary: 'When a living tunnel became healthy or unhealthy, and why: the last 50 times, oldest first',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    200: json(healthEvents, 'Empty until the first transition, and after the end of the tunnel.'),
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

const replayRoute = createRoute({
  method: 'post',
  path: '/usage/tunnels/{id}/requests/{request_id}/replay',
  tags: extensions,
  summary: 'Send a captured request to the local service once more, as it was or edited',
  security: withUser,
  request: {
    params: tunnelIdParam.extend({
      request_id: z.string().meta({ description: 'The id of the captured request.', examples: ['req_k3b9f200001c'] }),
    }),
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The edit breaks a rule, or the tunnel is not an http tunnel.', 'API_BAD_REQUEST', {
      reason: 'path: must begin with /',
    }),
    ...userRefusals,
    404: refused('No such tunnel or request, or not yours.', 'CAPTURE_UNKNOWN'),
    409: refused('It was not kept whole, or its tunnel has ended.', 'CAPTURE_NOT_REPLAYABLE', {
      reason: 'its tunnel has ended',
    }),
    429: refused('Too many replays are under way; see Retry-After.', 'CAPTURE_REPLAYS_BUSY', { limit: 16, seconds: 1 }),
    502: refused('The region does not answer, or the local service gave no answer.', 'EDGE_AWAY', { region: 'local' }),
    504: refused('The local service did not answer in time.', 'LOCAL_TIMEOUT', { seconds: 60 }),
  },
});

export interface UsageRouteDeps extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
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
  addEdgeRoutes(app, deps);
  addTunnelCloseRoute(app, deps);
  addTunnelPeerRoutes(app, deps);
  addTunnelPolicyRoutes(app, deps);
};

const addEdgeRoutes = (app: PlatformApp, deps: UsageRouteDeps): void => {
  app.openapi(listRequestsRoute, async (context) => {
    const { id } = context.req.valid('param');
    const { limit, cursor, answered } = context.req.valid('query');
    const wanted = { limit, cursor, ...(answered === undefined ? {} : { answered: answered === 'true' }) };
    return context.json(await listRequests(deps, context.get('actor'), id, wanted), 200);
  });
  app.openapi(healthEventsRoute, async (context) =>
    context.json(await listHealthEvents(deps, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.use(replayRoute.getRoutingPath(), emptyBodyIsNone);
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const edit = context.req.valid('json');
    return context.json(await replayRequest(deps, context.get('actor'), id, request_id, edit), 200);
  });
};

const groupsRoute = createRoute({
  method: 'get',
  path: '/load-balancing/groups',
  tags: ['load balancing'],
  summary: 'The live state of your pools, gathered from all edge regions',
  security: withUser,
  responses: {
    200: json(platformPools, 'Groups with a living tunnel of yours. A region that does not answer is a warning.'),
    ...userRefusals,
  },
});

export interface LoadBalancingRouteDeps extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly edges: GroupEdges;
}

/** The caller's load-balanced pools over HTTP. */
export const addLoadBalancingRoutes = (app: PlatformApp, deps: LoadBalancingRouteDeps): void => {
  app.use('/load-balancing/*', deps.requireUser);
  app.openapi(groupsRoute, async (context) => context.json(await listGroups(deps, context.get('actor')), 200));
};
