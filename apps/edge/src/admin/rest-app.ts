// The edge REST: thin handlers over the tunnel table, with one way in (requireKey) and one way out for errors (errorAnswer).
import { type Hook, OpenAPIHono } from '@hono/zod-openapi';
import { REQUEST_ID_PATTERN } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { EDGE_LIMITS } from '../limits.ts';
import { addCaptureRoutes } from './capture-routes.ts';
import { errorAnswer } from './error-mapper.ts';
import { findTunnel } from './find-tunnel.ts';
import { addGroupRoutes } from './group-routes.ts';
import { maySee, presentTunnel } from './present-tunnel.ts';
import { refuseMethod } from './refuse-method.ts';
import { requireKey } from './require-key.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';
import { closeTunnelRoute, listRegionsRoute, listTunnelsRoute, showTunnelRoute, statusRoute } from './rest-routes.ts';

const OPENAPI_PATH = '/api/openapi.json';

export const createRestApp = (deps: RestDependencies): OpenAPIHono<RestEnv> => {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseUnreadable });
  app.use(
    giveRequestId(deps.newRequestId),
    refuseLargeBody,
    bodyLimit({ maxSize: EDGE_LIMITS.API_BODY_MAX_BYTES, onError: bodyTooLarge }),
  );
  app.onError((error, context) => answerError(context, error, deps));
  app.notFound((context) => answerError(context, new Fault('API_NOT_FOUND', { path: context.req.path }), deps));
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
  app.all(statusRoute.getRoutingPath(), refuseMethod('GET, HEAD'));
  app.all(OPENAPI_PATH, refuseMethod('GET, HEAD'));
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

  app.all(collection, refuseMethod('GET, HEAD'));
  app.all(single, refuseMethod('GET, HEAD, DELETE'));
  app.all(regions, refuseMethod('GET, HEAD'));
};

const giveRequestId =
  (newRequestId: () => string): MiddlewareHandler<RestEnv> =>
  async (context, next) => {
    const given = context.req.header('x-request-id') ?? '';
    const requestId = REQUEST_ID_PATTERN.test(given) ? given : newRequestId();
    context.set('requestId', requestId);
    context.header('x-request-id', requestId);
    context.header('cache-control', 'no-store');
    await next();
  };

// hono's limit looks only at bodies a Request may have; a GET that announces one is refused here.
const refuseLargeBody: MiddlewareHandler<RestEnv> = async (context, next) => {
  if (Number(context.req.header('content-length') ?? 0) > EDGE_LIMITS.API_BODY_MAX_BYTES) bodyTooLarge();
  await next();
};

const bodyTooLarge = (): never => {
  throw new Fault('API_BODY_TOO_LARGE', { limit: EDGE_LIMITS.API_BODY_MAX_BYTES });
};

const answerError = (context: Context<RestEnv>, error: unknown, { logger }: RestDependencies): Response => {
  const { status, headers, body } = errorAnswer(error, context.get('requestId'), logger);
  return context.json(body, status as ContentfulStatusCode, headers);
};
