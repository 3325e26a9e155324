// The routes of groups as the OpenAPI document tells them. What they do is in group-routes.ts.
import { createRoute, z } from '@hono/zod-openapi';
import { groupEvent, groupProtocol, groupSummaries, healthEvents, lagged } from '@tunnel/contract';
import { json, keyRefusals, refused, tunnelIdParam, withKey } from './rest-routes.ts';

export const listGroupsRoute = createRoute({
  method: 'get',
  path: '/api/groups',
  summary: 'The load-balanced groups: all for the admin token; for an API key those with a member of its account',
  security: withKey,
  responses: {
    200: json(groupSummaries, 'Empty while load balancing is off. An API key sees its own members alone.'),
    ...keyRefusals,
  },
});

export const healthEventsRoute = createRoute({
  method: 'get',
  path: '/api/tunnels/{id}/health-events',
  summary: 'When a tunnel became healthy or unhealthy, and why: the last 50 times, oldest first',
  security: withKey,
  request: { params: tunnelIdParam },
  responses: {
    200: json(healthEvents, 'Empty until the first transition.'),
    ...keyRefusals,
    404: refused('No such tunnel, or not yours.'),
  },
});

const STREAM =
  'Server-Sent Events. `group_event`: the health of a member changed; its data is a GroupEvent, its `id` rises. ' +
  '`lagged`: the consumer fell behind and missed so many events at this point; its data is a Lagged, and GET /api/groups ' +
  'tells how things stand. A comment every 30 s keeps the connection. The stream ends with the group, with the last ' +
  'member that its key may see, with the key, and when the edge stops.';

export const groupEventsRoute = createRoute({
  method: 'get',
  path: '/api/groups/{protocol}/{label}/events',
  summary: 'What happens in a group, as it happens',
  security: withKey,
  request: {
    params: z.object({
      protocol: groupProtocol,
      label: z.string().meta({ description: 'http: the subdomain; tcp: the port.' }),
    }),
  },
  responses: {
    200: { description: STREAM, content: { 'text/event-stream': { schema: z.union([groupEvent, lagged]) } } },
    401: keyRefusals[401],
    404: refused('No such group, or without a member of yours.'),
    429: refused('Too many refused keys from this address, or streams at once; see Retry-After.'),
    503: refused('The edge is shutting down.'),
  },
});
