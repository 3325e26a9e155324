// Captured requests over the REST: the list, one of them, waiting for the next one, and sending one again.
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
  summary: `The last ${CAPTURES_KEPT_MAX} requests of an http tunnel, page by page; for an hour after its end, too`,
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
    200: json(captureList, 'What was kept; nothing when captures are off, or the tunnel ended long ago.'),
    400: refused('The limit is not in its range, the cursor is none, or the tunnel is not an http tunnel.'),
    404: unknownTunnel,
  },
});

const requestParams = tunnelIdParam.extend({
  request_id: z.string().meta({ description: 'The id of the captured request.' }),
});

const { methodMax, pathMax, cursorMax } = REQUEST_WAIT_BOUNDS;

const awaitRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests/next',
  summary: 'Wait for the next request of an http tunnel to finish',
  request: {
    params: tunnelIdParam,
    query: z.object({
      method: z.string().min(1).max(methodMax).optional().openapi({ description: 'Only requests of this method.' }),
      path_contains: z
        .string()
        .max(pathMax)
        .optional()
        .openapi({ description: 'Only those whose path, as it is shown, has this in it.' }),
      timeout_secs: z.string().optional().openapi({
        type: 'integer',
        minimum: REQUEST_WAIT_SECS.min,
        maximum: REQUEST_WAIT_SECS.max,
        default: REQUEST_WAIT_SECS.default,
        description: 'How long at most.',
      }),
      after: z
        .string()
        .max(cursorMax)
        .optional()
        .openapi({ description: 'The cursor of the answer before; left out: those that finish from now on.' }),
    }),
  },
  responses: {
    200: json(awaitedRequest, 'As soon as there is one; without one when the time is over, or the tunnel ends.'),
    400: refused('A parameter is not in its range, or the tunnel is not an http tunnel.'),
    404: unknownTunnel,
    410: refused('The tunnel has ended.'),
  },
});

const showCaptureRoute = keyedRoute({
  method: 'get',
  path: '/api/tunnels/{id}/requests/{request_id}',
  summary: 'One captured request',
  request: { params: requestParams },
  responses: {
    200: json(capturedRequest, 'As it is kept; one that is under way as far as it is.'),
    400: refused('The tunnel is not an http tunnel.'),
    404: refused('No such tunnel or request, or not yours.'),
  },
});

const replayRoute = keyedRoute({
  method: 'post',
  path: '/api/tunnels/{id}/requests/{request_id}/replay',
  summary: 'Send a captured request to the local service once more, as it was or edited',
  request: {
    params: requestParams,
    body: { content: { 'application/json': { schema: replayEdit } }, required: false },
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The edit breaks a rule, or the tunnel is not an http tunnel.'),
    404: refused('No such tunnel or request, or not yours.'),
    409: refused('It was not kept whole, or its tunnel has ended.'),
    502: refused('The local service could not be reached, or gave no answer.'),
    504: refused('The local service did not answer in time.'),
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
  // Before the one with an id in the same place.
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
