// Groups over the REST: the list, the health of a tunnel as it changed, and the events of a group as they happen.
import type { OpenAPIHono } from '@hono/zod-openapi';
import { groupProtocol, type HealthEvent } from '@tunnel/contract';
import { endpointOfLabel, type TunnelGroup } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Context } from 'hono';
import type { Tunnel } from '../routing/tunnel.ts';
import { findTunnel } from './find-tunnel.ts';
import { groupListBody } from './group-list.ts';
import { groupEventsRoute, healthEventsRoute, listGroupsRoute } from './group-rest-routes.ts';
import { requireKey } from './require-key.ts';
import type { RestDependencies, RestEnv } from './rest-context.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };
/** The last one is for nginx, which else keeps events until a buffer is full. */
const EVENT_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' };

export const addGroupRoutes = (app: OpenAPIHono<RestEnv>, deps: RestDependencies): void => {
  const list = listGroupsRoute.getRoutingPath();
  const history = healthEventsRoute.getRoutingPath();
  const events = groupEventsRoute.getRoutingPath();
  for (const path of [list, history, events]) app.use(path, requireKey(deps));

  // Bodies that are read at the caller's pace are beyond what a typed handler can return.
  app.openAPIRegistry.registerPath(listGroupsRoute);
  app.get(list, (context) => {
    const listing = { groups: deps.groups.values(), viewer: context.get('caller'), regionId: deps.region.id };
    if (isHead(context)) return context.body(null, 200, JSON_HEADERS);
    return context.body(groupListBody(listing), 200, JSON_HEADERS);
  });
  app.openapi(healthEventsRoute, (context) => {
    const { health } = findTunnel(deps, context.get('caller'), context.req.valid('param').id);
    const told: HealthEvent[] = health.history.map(({ at, healthy, reason }) => ({
      at: new Date(at).toISOString(),
      healthy,
      reason,
    }));
    return context.json(told, 200);
  });
  app.openAPIRegistry.registerPath(groupEventsRoute);
  app.get(events, (context) => {
    const group = findGroup(context, deps);
    if (isHead(context)) return context.body(null, 200, EVENT_HEADERS);
    return context.body(openStream(context, deps, group), 200, EVENT_HEADERS);
  });
};

const isHead = ({ req }: Context<RestEnv>): boolean => req.method === 'HEAD';

/** A group without a member of the caller's is as unknown as none. */
const findGroup = (context: Context<RestEnv>, { groups }: RestDependencies): TunnelGroup<Tunnel> => {
  const { protocol = '', label = '' } = context.req.param() as Record<string, string>;
  const shown = groupProtocol.safeParse(protocol);
  const endpoint = shown.success ? endpointOfLabel(shown.data, label) : null;
  const group = endpoint === null ? undefined : groups.at(endpoint);
  if (group?.isVisibleTo(context.get('caller')) !== true) throw new Fault('GROUP_UNKNOWN');
  return group;
};

const openStream = (
  context: Context<RestEnv>,
  { feed }: RestDependencies,
  group: TunnelGroup<Tunnel>,
): ReadableStream<Uint8Array> => {
  const { outgoing } = context.env;
  const stream = feed.open(group, { owner: context.get('caller'), keyId: context.get('keyId') });
  // The body is not even looked at when the caller has gone meanwhile, and would never be told.
  if (outgoing?.destroyed) stream.cut();
  else outgoing?.once('close', () => stream.cut());
  return stream.body;
};
