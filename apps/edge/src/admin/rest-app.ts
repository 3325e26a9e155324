// The edge REST: thin handlers over the tunnel table, with one way in (requireKey) and one way out for errors (its error mapper).
import { type Hook, OpenAPIHono } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';
import { boundBody, createErrorMapper, createUnroutedFault, requestIdOf, sendError } from '@tunnel/http-shell';
import type { MiddlewareHandler } from 'hono';
import { EDGE_LIMITS } from '../limits.ts';
import { addCaptureRoutes } from './capture-routes.ts';
import { findTunnel } from './find-tunnel.ts';
import { addGroupRoutes } from './group-routes.ts';
import { maySee, presentTunnel } from './present-tunnel.ts';
import { requireKey } from './require-key.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';
import { closeTunnelRoute, listRegionsRoute, listTunnelsRoute, showTunnelRoute, statusRoute } from './rest-routes.ts';

const OPENAPI_PATH = '/api/openapi.json';

export const createRestApp = (deps: RestDependencies): OpenAPIHono<RestEnv> => {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseUnreadable });
  const answerOf = createErrorMapper({ logger: deps.logger, failed: 'a REST request failed' });
  const unrouted = createUnroutedFault(app, { headAfter: 'get' });
  app.use(giveRequestId(deps.newRequestId), boundBody(EDGE_LIMITS.API_BODY_MAX_BYTES));
  app.onError((error, context) => sendError(context, answerOf(error, context.get('requestId'))));
  app.notFound((context) => sendError(context, answerOf(unrouted(context), context.get('requestId'))));
  addPublicRoutes(app, deps);
  addTunnelRoutes(app, deps);
  addCaptureRoutes(app, deps);
  addGroupRoutes(app, deps);
  return app;
};

/** Parameters that are not even of the described type, such as one that is repeated. */
const refuseUnreadable: Hook<unknown, RestEnv, string, unknown> = (result) => {
  if (result.success) return;
  const [issue] = result.error.issues;
  throw new Fault('API_BAD_REQUEST', { reason: `${issue?.path.join('.') ?? result.target}: ${issue?.message ?? ''}` });
};

const addPublicRoutes = (app: OpenAPIHono<RestEnv>, { region, version, status }: RestDependencies): void => {
  app.openapi(statusRoute, (context) => context.json({ ok: true, version, region_id: region.id, ...status() }, 200));
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  app.doc31(OPENAPI_PATH, { openapi: '3.1.0', info: { title: 'Edge REST', version } });
};

const addTunnelRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { tunnels, region } = deps;
  const collection = listTunnelsRoute.getRoutingPath();
  const single = showTunnelRoute.getRoutingPath();
  const regions = listRegionsRoute.getRoutingPath();
  for (const path of [collection, single, regions]) app.use(path, requireKey(deps));

  app.openapi(listTunnelsRoute, (context) => {
    const caller = context.get('caller');
    const seen = [...tunnels.values()].filter((tunnel) => maySee(caller, tunnel));
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
    const { tunnelId } = findTunnel(deps, context.get('caller'), context.req.valid('param').id);
    if (!deps.closeTunnel(tunnelId, new Fault('TUNNEL_CLOSED_BY_OPERATOR'))) throw new Fault('TUNNEL_UNKNOWN');
    return context.body(null, 204);
  });
  app.openapi(listRegionsRoute, (context) => context.json([{ ...region, current: true }], 200));
};

const giveRequestId =
  (newRequestId: () => string): MiddlewareHandler<RestEnv> =>
  async (context, next) => {
    const requestId = requestIdOf(context, newRequestId);
    context.set('requestId', requestId);
    context.header('x-request-id', requestId);
    context.header('cache-control', 'no-store');
    await next();
  };
