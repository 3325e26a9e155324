// The routes of usage as the document tells them. What they do is in usage-routes.ts.
import { createRoute, z } from '@hono/zod-openapi';
import {
  CAPTURE_LIST_LIMIT,
  CHART_DAYS,
  capturedRequest,
  captureList,
  healthEvents,
  shownProtocol,
  TUNNEL_LOG_LIMIT,
  TUNNEL_LOG_OFFSET,
  tunnelLog,
  tunnelLogEntry,
  tunnelState,
  usageChart,
  usageRegions,
  usageSummary,
} from '@tunnel/contract';
import { choiceParameter, integerParameter } from '@tunnel/http-shell';

import { EXTENSIONS, json, refused, tunnelIdParam, userRefusals, withUser } from '../route-parts.ts';

const tags = ['usage'];
const extensions = ['usage', EXTENSIONS];

const outOfRange = (field: string) =>
  refused('A number is not an integer of its range.', 'API_BAD_REQUEST', {
    reason: `${field} must be an integer from 1 to 100, got '0'`,
  });
const unknownTunnel = refused('No such tunnel, or not yours.', 'TUNNEL_UNKNOWN');
const regionAway = refused('The region of the tunnel does not answer.', 'EDGE_AWAY', { region: 'local' });

export const summaryRoute = createRoute({
  method: 'get',
  path: '/usage',
  tags,
  summary: 'Tunnels open now, and the sums of 30 days',
  security: withUser,
  responses: { 200: json(usageSummary, 'Days are those of UTC.'), ...userRefusals },
});

export const chartRoute = createRoute({
  method: 'get',
  path: '/usage/chart',
  tags,
  summary: 'Usage by day',
  security: withUser,
  request: { query: z.object({ days: integerParameter('days', CHART_DAYS, 'How many days, today among them.') }) },
  responses: { 200: json(usageChart, 'One point a day, oldest first.'), 400: outOfRange('days'), ...userRefusals },
});

export const listTunnelsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels',
  tags,
  summary: 'The log of your tunnels, newest first',
  security: withUser,
  request: {
    query: z.object({
      limit: integerParameter('limit', TUNNEL_LOG_LIMIT, 'How many at most.'),
      offset: integerParameter('offset', TUNNEL_LOG_OFFSET, 'How many are passed over.'),
      protocol: choiceParameter('protocol', shownProtocol.options, 'Only those of this protocol.'),
      state: choiceParameter('state', tunnelState.options, 'Only those that live, or only those that have ended.'),
    }),
  },
  responses: { 200: json(tunnelLog, 'A page of it.'), 400: outOfRange('limit'), ...userRefusals },
});

export const regionsRoute = createRoute({
  method: 'get',
  path: '/usage/regions',
  tags: extensions,
  summary: 'The regions that are there now, and how clients and visitors come to them',
  security: withUser,
  responses: { 200: json(usageRegions, 'By their id.'), ...userRefusals },
});

export const showTunnelRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}',
  tags,
  summary: 'One tunnel of the log',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: { 200: json(tunnelLogEntry, 'The entry.'), ...userRefusals, 404: unknownTunnel },
});

export const listRequestsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/requests',
  tags,
  summary: 'The last requests of an http tunnel, from the edge that it ran on',
  security: withUser,
  request: {
    params: tunnelIdParam,
    query: z.object({ limit: integerParameter('limit', CAPTURE_LIST_LIMIT, 'How many at most.') }),
  },
  responses: {
    200: json(
      captureList,
      'Newest first; the shape follows the edge and may grow. Nothing when they are no longer kept.',
    ),
    400: refused('The limit is not in its range, or the tunnel is not an http tunnel.', 'TUNNEL_NOT_HTTP', {
      protocol: 'tcp',
    }),
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

export const healthEventsRoute = createRoute({
  method: 'get',
  path: '/usage/tunnels/{id}/health-events',
  tags: extensions,
  summary: 'When a living tunnel became healthy or unhealthy, and why: the last 50 times, oldest first',
  security: withUser,
  request: { params: tunnelIdParam },
  responses: {
    200: json(healthEvents, 'Empty until the first transition, and after the end of the tunnel.'),
    ...userRefusals,
    404: unknownTunnel,
    502: regionAway,
  },
});

export const replayRoute = createRoute({
  method: 'post',
  path: '/usage/tunnels/{id}/requests/{request_id}/replay',
  tags: extensions,
  summary: 'Send a captured request to the local service once more',
  security: withUser,
  request: {
    params: tunnelIdParam.extend({
      request_id: z.string().meta({ description: 'The id of the captured request.', examples: ['req_k3b9f200001c'] }),
    }),
  },
  responses: {
    200: json(capturedRequest, 'The new request, with replay_of; whatever the status of the service’s answer.'),
    400: refused('The tunnel is not an http tunnel.', 'TUNNEL_NOT_HTTP', { protocol: 'tcp' }),
    ...userRefusals,
    404: refused('No such tunnel or request, or not yours.', 'CAPTURE_UNKNOWN'),
    409: refused('It was not kept whole, or its tunnel has ended.', 'CAPTURE_NOT_REPLAYABLE', {
      reason: 'its tunnel has ended',
    }),
    429: refused('Too many replays are under way; see Retry-After.', 'CAPTURE_REPLAYS_BUSY', { limit: 16, seconds: 1 }),
    502: refused('The region does not answer, or the local service gave no answer.', 'EDGE_AWAY', { region: 'local' }),
    504: refused('The local service did not answer in time.', 'LOCAL_TIMEOUT', { seconds: 60 }),
  },
});
