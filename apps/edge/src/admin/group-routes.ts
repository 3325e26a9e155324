// REST routes for groups: list the groups, show the health history of a tunnel, and stream the events of a group.
import { z } from '@hono/zod-openapi';
import {
  groupEvent,
  groupProtocol,
  groupSummaries,
  type HealthEvent,
  healthEvents,
  lagged,
  showProtocol,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { endpointsOfLabel } from '@tunnel/rules/tunnels';
import type { Context } from 'hono';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { groupListBody } from './group-list.ts';
import {
  findTunnel,
  json,
  type KeyedRoutes,
  keyedRoute,
  type RestDependencies,
  type RestEnv,
  refused,
  tunnelRoute,
} from './rest-context.ts';

const listGroupsRoute = keyedRoute({
  method: 'get',
  path: '/api/groups',
  summary:
    'List the load-balanced groups. An API key sees groups with a member of its account, the admin token sees all groups',
  responses: {
    200: json(
      groupSummaries,
      'The groups. Empty while load balancing is off. An API key sees only members of its account.',
    ),
  },
});

const healthEventsRoute = tunnelRoute({
  method: 'get',
  path: '/api/tunnels/{id}/health-events',
  summary: 'List the last 50 health changes of a tunnel, oldest first, with the reasons',
  responses: { 200: json(healthEvents, 'Empty until the first transition.') },
});

const STREAM =
  'Server-Sent Events. `group_event`: the health of a member changed. The data is a GroupEvent, and the `id` increases. ' +
  '`lagged`: the reader was too slow and missed events. The data is a Lagged with the number of missed events; GET ' +
  '/api/groups returns the current state. A comment every 30 s keeps the connection open. The stream ends when the group ' +
  'ends, when your last member leaves the group, when the API key is revoked, and when the edge stops.';

const groupEventsRoute = keyedRoute({
  method: 'get',
  path: '/api/groups/{protocol}/{label}/events',
  summary: 'Stream the health changes of a group',
  request: {
    params: z.object({
      protocol: groupProtocol,
      label: z.string().meta({
        description: 'http: the subdomain or the custom domain. tcp: the port. tls: the host.',
      }),
    }),
  },
  responses: {
    200: { description: STREAM, content: { 'text/event-stream': { schema: z.union([groupEvent, lagged]) } } },
    404: refused('No such group, or no member of the group belongs to your account.'),
    429: refused('Too many invalid API keys from this address, or too many open streams. See Retry-After.'),
    503: refused('The edge is shutting down.'),
  },
});

const JSON_HEADERS = { 'content-type': 'application/json' };
/** Headers of an event stream. `x-accel-buffering` stops nginx from holding events back until a buffer is full. */
const EVENT_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };

export const addGroupRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.addStream(listGroupsRoute, (context) => {
    const { groups, lastAlertOf, region } = deps;
    const listing = { groups: groups.values(), viewer: context.get('caller'), regionId: region.id, lastAlertOf };
    if (isHead(context)) return context.body(null, 200, JSON_HEADERS);
    return context.body(groupListBody(listing), 200, JSON_HEADERS);
  });
  routes.add(healthEventsRoute, (context) => {
    const { health } = findTunnel(deps, context);
    const told: HealthEvent[] = health.history.map(({ at, healthy, reason }) => ({
      at: new Date(at).toISOString(),
      healthy,
      reason,
    }));
    return context.json(told, 200);
  });
  routes.addStream(groupEventsRoute, (context) => {
    const group = findGroup(context, deps);
    if (isHead(context)) return context.body(null, 200, EVENT_HEADERS);
    return context.body(openStream(context, deps, group), 200, EVENT_HEADERS);
  });
};

const isHead = ({ req }: Context<RestEnv>): boolean => req.method === 'HEAD';

/** Returns the group named in the path. Throws GROUP_UNKNOWN if the group does not exist, or if the caller has no member in the group. */
const findGroup = (context: Context<RestEnv>, { groups, domain }: RestDependencies): TunnelGroup<Tunnel> => {
  const { protocol = '', label = '' } = context.req.param() as Record<string, string>;
  const shown = groupProtocol.safeParse(protocol);
  const endpoints = shown.success ? endpointsOfLabel(shown.data, label, domain) : [];
  for (const endpoint of endpoints) {
    const group = groups.at(endpoint);
    // The group at a name can be an http group or a tls group.
    const isIt = group !== undefined && showProtocol(group.protocol) === shown.data;
    if (isIt && group.isVisibleTo(context.get('caller'))) return group;
  }
  throw new Fault('GROUP_UNKNOWN');
};

const openStream = (
  context: Context<RestEnv>,
  { feed }: RestDependencies,
  group: TunnelGroup<Tunnel>,
): ReadableStream<Uint8Array> => {
  const { outgoing } = context.env;
  const stream = feed.open(group, { owner: context.get('caller'), keyId: context.get('keyId') });
  // If the caller has disconnected already, no close event follows and the body is never read, so the stream is closed here.
  if (outgoing?.destroyed) stream.cut();
  else outgoing?.once('close', () => stream.cut());
  return stream.body;
};
