// Captured requests over the REST: the list, and sending one again.
import type { OpenAPIHono } from '@hono/zod-openapi';
import { CAPTURE_LIST_LIMIT } from '@tunnel/contract';
import { boundedInteger } from './bounded-integer.ts';
import { callerAddress } from './caller-address.ts';
import { refuseMethod } from './refuse-method.ts';
import { requireKey } from './require-key.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';
import { listCapturesRoute, replayRoute } from './rest-routes.ts';

export const addCaptureRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { captures, trustedProxies } = deps;
  const list = listCapturesRoute.getRoutingPath();
  const replay = replayRoute.getRoutingPath();
  for (const path of [list, replay]) app.use(path, requireKey(deps));

  app.openapi(listCapturesRoute, async (context) => {
    const limit = boundedInteger('limit', context.req.valid('query').limit, CAPTURE_LIST_LIMIT);
    return context.json(await captures.list(context.get('caller'), context.req.valid('param').id, limit), 200);
  });
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const peer = context.env.incoming.socket.remoteAddress ?? '';
    const visitorAddress = callerAddress(peer, context.req.header('x-forwarded-for'), trustedProxies);
    return context.json(await captures.replay(context.get('caller'), id, request_id, visitorAddress), 200);
  });

  app.all(list, refuseMethod('GET, HEAD'));
  app.all(replay, refuseMethod('POST'));
};
