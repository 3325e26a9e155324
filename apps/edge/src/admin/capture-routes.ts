// Captured requests over the REST: the list, and sending one again.
import type { OpenAPIHono } from '@hono/zod-openapi';
import { CAPTURE_LIST_LIMIT } from '@tunnel/contract';
import { boundedInteger } from '@tunnel/http-shell';
import { requireKey, visitorAddress } from './require-key.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';
import { listCapturesRoute, replayRoute } from './rest-routes.ts';

export const addCaptureRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { captures } = deps;
  const list = listCapturesRoute.getRoutingPath();
  const replay = replayRoute.getRoutingPath();
  for (const path of [list, replay]) app.use(path, requireKey(deps));

  app.openapi(listCapturesRoute, async (context) => {
    const limit = boundedInteger('limit', context.req.valid('query').limit, CAPTURE_LIST_LIMIT);
    return context.json(await captures.list(context.get('caller'), context.req.valid('param').id, limit), 200);
  });
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const address = visitorAddress(context, deps);
    return context.json(await captures.replay(context.get('caller'), id, request_id, address), 200);
  });
};
