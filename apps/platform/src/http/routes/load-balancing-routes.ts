// The caller's load-balanced pools over HTTP.

import { createRoute } from '@hono/zod-openapi';
import { platformPools } from '@tunnel/contract';
import type { MiddlewareHandler } from 'hono';
import { type GroupEdges, listGroups } from '../../services/usage/ask-edges.ts';
import type { PlatformApp, PlatformEnv, RouteContext } from '../platform-env.ts';
import { json, userRefusals, withUser } from '../route-parts.ts';

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

export interface LoadBalancingRouteNeeds extends RouteContext {
  readonly requireUser: MiddlewareHandler<PlatformEnv>;
  readonly edges: GroupEdges;
}

export const addLoadBalancingRoutes = (app: PlatformApp, needs: LoadBalancingRouteNeeds): void => {
  app.use('/load-balancing/*', needs.requireUser);
  app.openapi(groupsRoute, async (context) => context.json(await listGroups(needs, context.get('actor')), 200));
};
