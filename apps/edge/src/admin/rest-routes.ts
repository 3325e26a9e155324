// The routes of the edge REST as the OpenAPI document tells them. What they do is in rest-app.ts.
import { createRoute, z } from '@hono/zod-openapi';
import {
  apiError,
  CAPTURE_LIST_LIMIT,
  capturedRequest,
  captureList,
  edgeRegions,
  edgeStatus,
  edgeTunnel,
  edgeTunnels,
} from '@tunnel/contract';

export const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

export const refused = (description: string) => json(apiError, description);

export const keyRefusals = {
  401: refused('No key, or one that is not accepted.'),
  429: refused('Too many refused keys from this address, or replays under way; see Retry-After.'),
};

export const withKey = [{ bearer: [] }];
export const tunnelIdParam = z.object({ id: z.string().meta({ description: 'The tunnel_id.' }) });

export const statusRoute = createRoute({
  method: 'get',
  path: '/api/status',
  summary: 'Is the edge well, and how busy is it?',
  security: [],
  responses: { 200: json(edgeStatus, 'The state of this edge.') },
});

export const listTunnelsRoute = createRoute({
  method: 'get',
  path: '/api/tunnels',
  summary: 'The living tunnels: all of them for the admin token, the own ones for an API key',
  security: withKey,
  responses: { 200: json(edgeTunnels, 'In the order of their registration.'), ...keyRefusals },
});

export const showTunnelRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}',
  summary: 'One tunnel',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(edgeTunnel, 'The tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

export const closeTunnelRoute = createRoute({
  method: 'delete',
  path: '/api/tunnels/{id}',
  summary: 'Close a tunnel: its client is told and does not register it again; open connections finish',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    204: { description: 'It is closed.' },
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

export const listRegionsRoute = createRoute({
  method: 'get',
  path: '/api/regions',
  summary: 'The regions this edge knows',
  security: withKey,
  responses: { 200: json(edgeRegions, 'The regions.'), ...keyRefusals },
});

const { min, max, default: whenAbsent } = CAPTURE_LIST_LIMIT;

export const listCapturesRoute = createRoute({
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

export const replayRoute = createRoute({
  method: 'post',
  path: '/api/tunnels/{id}/requests/{request_id}/replay',
  summary: 'Send a captured request to the local service once more',
  security: withKey,
  request: {
    params: tunnelIdParam.extend({ request_id: z.string().meta({ description: 'The id of the captured request.' }) }),
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The tunnel is not an http tunnel.'),
    ...keyRefusals,
    404: refused('No such tunnel or request, or not yours.'),
    409: refused('It was not kept whole, or its tunnel has ended.'),
    502: refused('The local service could not be reached, or gave no answer.'),
    504: refused('The local service did not answer in time.'),
  },
});
