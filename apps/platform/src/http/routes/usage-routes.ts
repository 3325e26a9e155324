// Usage over HTTP: sums, days, the log, and what the edge of a tunnel knows of it.

import type { MiddlewareHandler } from 'hono';
import {
  listHealthEvents,
  listRegions,
  listRequests,
  replayRequest,
  type TunnelEdges,
} from '../../services/usage/ask-edges.ts';
import { findTunnel, listTunnels } from '../../services/usage/tunnel-log.ts';
import { chartUsage, summarizeUsage } from '../../services/usage/usage-sums.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../platform-env.ts';
import {
  chartRoute,
  healthEventsRoute,
  listRequestsRoute,
  listTunnelsRoute,
  regionsRoute,
  replayRoute,
  showTunnelRoute,
  summaryRoute,
} from './usage-route-list.ts';

export interface UsageRouteNeeds extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly edges: TunnelEdges;
}

export const addUsageRoutes = (app: PlatformApp, needs: UsageRouteNeeds): void => {
  app.use('/usage/*', needs.requireUser);
  app.openapi(summaryRoute, async (context) => context.json(await summarizeUsage(needs, context.get('actor')), 200));
  app.openapi(chartRoute, async (context) =>
    context.json(await chartUsage(needs, context.get('actor'), context.req.valid('query').days), 200),
  );
  app.openapi(listTunnelsRoute, async (context) =>
    context.json(await listTunnels(needs, context.get('actor'), context.req.valid('query')), 200),
  );
  app.openapi(regionsRoute, async (context) => context.json(await listRegions(needs), 200));
  app.openapi(showTunnelRoute, async (context) =>
    context.json(await findTunnel(needs, context.get('actor'), context.req.valid('param').id), 200),
  );
  addEdgeRoutes(app, needs);
};

const addEdgeRoutes = (app: PlatformApp, needs: UsageRouteNeeds): void => {
  app.openapi(listRequestsRoute, async (context) => {
    const { id } = context.req.valid('param');
    return context.json(await listRequests(needs, context.get('actor'), id, context.req.valid('query').limit), 200);
  });
  app.openapi(healthEventsRoute, async (context) =>
    context.json(await listHealthEvents(needs, context.get('actor'), context.req.valid('param').id), 200),
  );
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    return context.json(await replayRequest(needs, context.get('actor'), id, request_id), 200);
  });
};
