// REST route for the operator: lists the open connections of the edge, with the phase of each connection and the event it waits for.
import { type EdgeConnection, type EdgeConnections, edgeConnections } from '@tunnel/contract';
import { AcceptedConnection } from '@tunnel/http-shell';
import type { Admission, ConnectionShare, Ticket } from '@tunnel/rules/admission';
import {
  json,
  type KeyedRoutes,
  keyedRoute,
  operatorOnly,
  type RestDependencies,
  requireOperator,
} from './rest-context.ts';

/** Maximum connections in the response of GET /api/connections. The oldest connections are shown. */
export const API_CONNECTIONS_SHOWN = 1000;

const listConnectionsRoute = keyedRoute({
  method: 'get',
  path: '/api/connections',
  summary: 'List the open connections of every kind, oldest first (admin token only)',
  responses: {
    200: json(edgeConnections, 'Currently open connections.'),
    403: operatorOnly,
  },
});

export const addConnectionRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.add(listConnectionsRoute, (context) => {
    requireOperator(context);
    return context.json(listOf(deps.admission, deps.monotonic()), 200);
  });
};

const listOf = (admission: RestDependencies['admission'], nowMs: number): EdgeConnections => {
  const { tickets } = admission;
  const connections: EdgeConnection[] = [];
  for (const ticket of tickets) {
    if (connections.length >= API_CONNECTIONS_SHOWN) break;
    connections.push(show(ticket, nowMs));
  }
  return {
    total: tickets.size,
    shares: {
      visitors: useOf(admission, 'visitors'),
      control: useOf(admission, 'control'),
      api: useOf(admission, 'api'),
    },
    connections,
    truncated: tickets.size > connections.length,
  };
};

const useOf = (
  { used, limits }: Pick<Admission, 'used' | 'limits'>,
  share: ConnectionShare,
): { open: number; limit: number } => ({ open: used[share], limit: limits[share] });

const show = ({ kind, network, account, enteredMs, held }: Ticket, nowMs: number): EdgeConnection => {
  const { phase, waitsFor, tunnelId = null } = held?.describe() ?? { phase: 'accepted', waitsFor: 'a request' };
  return {
    kind,
    phase,
    waits_for: waitsFor,
    age_secs: Math.max(0, Math.round(nowMs - enteredMs) / 1000),
    peer: held instanceof AcceptedConnection ? held.peer : '',
    network,
    account,
    tunnel_id: tunnelId,
  };
};
