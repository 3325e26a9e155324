// REST routes for captured requests: list requests, show a request, wait for the next request, and replay a request.
import { z } from '@hono/zod-openapi';
import {
  awaitedRequest,
  CAPTURE_CURSOR_MAX,
  CAPTURE_LIST_LIMIT,
  CAPTURES_KEPT_MAX,
  capturedRequest,
  captureList,
  REQUEST_WAIT_BOUNDS,
  REQUEST_WAIT_SECS,
  replayEdit,
} from '@tunnel/contract';
import { boundedInteger, choiceParameter, cursorParameter, emptyBodyIsNone } from '@tunnel/http-shell';
import {
  json,
  type KeyedRoutes,
  keyedRoute,
  type RestDependencies,
  refused,
  tunnelIdParam,
  unknownTunnel,
  visitorAddress,
} from './rest-context.ts';

const { min, max, default: whenAbsent } = CAPTURE_LIST_LIMIT;

const listCapturesRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests',
  summary: `The last ${CAPTURES_KEPT_MAX} captured requests of an http tunnel, in pages. Available until an hour after the tunnel closed`,
  request: {
    params: tunnelIdParam,
    // The schema accepts any text, so that an invalid number gets the edge's error response. The API document describes an integer.
    query: z.object({
      limit: z.string().optional().openapi({
        type: 'integer',
        minimum: min,
        maximum: max,
        default: whenAbsent,
        description: 'Maximum number of requests.',
      }),
      cursor: cursorParameter(
        'cursor',
        CAPTURE_CURSOR_MAX,
        '`next_cursor` of an earlier response, to get the next older requests.',
      ),
      answered: choiceParameter(
        'answered',
        ['true', 'false'],
        'true: only requests answered by a policy rule. false: only requests forwarded to the local service.',
      ),
    }),
  },
  responses: {
    200: json(
      captureList,
      'The captured requests. Empty if capturing is off or the tunnel closed more than an hour ago.',
    ),
    400: refused('The limit is out of range, the cursor is invalid, or the tunnel is not an http tunnel.'),
    404: unknownTunnel,
  },
});

const requestParams = tunnelIdParam.extend({
  request_id: z.string().meta({ description: 'Id of the captured request.' }),
});

const { methodMax, pathMax, cursorMax } = REQUEST_WAIT_BOUNDS;

const awaitRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests/next',
  summary: 'Wait until the next request of an http tunnel has finished',
  request: {
    params: tunnelIdParam,
    query: z.object({
      method: z.string().min(1).max(methodMax).optional().openapi({ description: 'Only requests with this method.' }),
      path_contains: z
        .string()
        .max(pathMax)
        .optional()
        .openapi({ description: 'Only requests with this text in the displayed path.' }),
      timeout_secs: z.string().optional().openapi({
        type: 'integer',
        minimum: REQUEST_WAIT_SECS.min,
        maximum: REQUEST_WAIT_SECS.max,
        default: REQUEST_WAIT_SECS.default,
        description: 'Maximum time to wait.',
      }),
      after: z.string().max(cursorMax).optional().openapi({
        description:
          '`cursor` of the previous response. Without a cursor, the call waits for requests finished from now on.',
      }),
    }),
  },
  responses: {
    200: json(awaitedRequest, 'The finished request, or no request if the time is up or the tunnel closed.'),
    400: refused('A parameter is out of range, or the tunnel is not an http tunnel.'),
    404: unknownTunnel,
    410: refused('The tunnel is closed.'),
  },
});

const showCaptureRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests/{request_id}',
  summary: 'Get a captured request',
  request: { params: requestParams },
  responses: {
    200: json(capturedRequest, 'The captured request. For a request in progress: the part received so far.'),
    400: refused('The tunnel is not an http tunnel.'),
    404: refused('No such tunnel or request in your account.'),
  },
});

const replayRoute = keyedRoute({
  method: 'post',
  path: '/api/tunnels/{id}/requests/{request_id}/replay',
  summary: 'Replay a captured request, unchanged or edited',
  request: {
    params: requestParams,
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(
      capturedRequest,
      'The new request, with `replay_of`. Returned for any response status of the local service.',
    ),
    400: refused('The edit is invalid, or the tunnel is not an http tunnel.'),
    404: refused('No such tunnel or request in your account.'),
    409: refused('The request was not captured completely, or the tunnel is closed.'),
    502: refused('The local service could not be reached or sent no response.'),
    504: refused('The local service did not respond in time.'),
  },
});

export const addCaptureRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  const { captures } = deps;
  routes.add(listCapturesRoute, async (context) => {
    const { limit, cursor, answered } = context.req.valid('query');
    const order = {
      tunnelId: context.req.valid('param').id,
      cursor,
      limit: boundedInteger('limit', limit, CAPTURE_LIST_LIMIT),
      isAnswered: answered === undefined ? undefined : answered === 'true',
    };
    return context.json(await captures.list(context.get('caller'), order), 200);
  });
  // The wait route is added before the route with a request id in the same path segment. Otherwise its path would match as an id.
  routes.add(awaitRoute, async (context) => {
    const { method, path_contains, timeout_secs, after } = context.req.valid('query');
    const order = {
      tunnelId: context.req.valid('param').id,
      method,
      pathContains: path_contains,
      after,
      timeoutMs: boundedInteger('timeout_secs', timeout_secs, REQUEST_WAIT_SECS) * 1000,
      signal: context.req.raw.signal,
    };
    return context.json(await captures.awaitNext(context.get('caller'), order), 200);
  });
  routes.add(showCaptureRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    return context.json(await captures.find(context.get('caller'), id, request_id), 200);
  });
  routes.use(replayRoute, emptyBodyIsNone);
  routes.add(replayRoute, async (context) => {
    const { id, request_id } = context.req.valid('param');
    const order = {
      tunnelId: id,
      requestId: request_id,
      visitorAddress: visitorAddress(context, deps),
      edit: context.req.valid('json'),
    };
    return context.json(await captures.replay(context.get('caller'), order), 200);
  });
};
