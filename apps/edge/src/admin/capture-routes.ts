// Captured requests over the REST: the list, and sending one again.
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { CAPTURE_LIST_LIMIT, capturedRequest, captureList, replayEdit } from '@tunnel/contract';
import { boundedInteger, emptyBodyIsNone } from '@tunnel/http-shell';
import {
  json,
  keyRefusals,
  type RestDependencies,
  type RestEnv,
  refused,
  requireKey,
  tunnelIdParam,
  visitorAddress,
  withKey,
} from './rest-context.ts';

const { min, max, default: whenAbsent } = CAPTURE_LIST_LIMIT;

const listCapturesRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests',
  summary: 'The last requests of an http tunnel; for an hour after its end, too',
  security: withKey,
  request: {
    params: tunnelIdParam,
    // Text here, so that the refusal of a bad number is ours; the document says what it is.
    query: z.object({
      limit: z.string().optional().openapi({
        type: 'integer',
        minimum: min,
        maximum: max,
        default: whenAbsent,
        description: 'How many at most.',
      }),
    }),
  },
  responses: {
    200: json(captureList, 'What was kept; nothing when captures are off, or the tunnel ended long ago.'),
    400: refused('The limit is not in its range, or the tunnel is not an http tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

const replayRoute = createRoute({
  method: 'post',
  path: '/api/tunnels/{id}/requests/{request_id}/replay',
  summary: 'Send a captured request to the local service once more, as it was or edited',
  security: withKey,
  request: {
    params: tunnelIdParam.extend({ request_id: z.string().meta({ description: 'The id of the captured request.' }) }),
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The edit breaks a rule, or the tunnel is not an http tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel or request, or not yours.'),
    409: refused('It was not kept whole, or its tunnel has ended.'),
    502: refused('The local service could not be reached, or gave no answer.'),
    504: refused('The local service did not answer in time.'),
  },
});

export const addCaptureRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const { captures } = deps;
  const list = listCapturesRoute.getRoutingPath();
  const replay = replayRoute.getRoutingPath();
  for (const path of [list, replay]) app.use(path, requireKey(deps));
  app.use(replay, emptyBodyIsNone);

  app.openapi(listCapturesRoute, async (context) => {
    const limit = boundedInteger('limit', context.req.valid('query').limit, CAPTURE_LIST_LIMIT);
    return context.json(await captures.list(context.get('caller'), context.req.valid('param').id, limit), 200);
  });
  app.openapi(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const order = {
      ...{ tunnelId: id, requestId: request_id, visitorAddress: visitorAddress(context, deps) },
      edit: context.req.valid('json'),
    };
    return context.json(await captures.replay(context.get('caller'), order), 200);
  });
};
