// REST route for the flows of a udp tunnel: visitors, dropped datagrams by reason, and the datagram path between edge and client.
import { type EdgeFlow, edgeFlows } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type Flow } from '@tunnel/rules/flows';
import { hostPort, plainAddress } from '@tunnel/rules/net';
import { findTunnel, json, type KeyedRoutes, type RestDependencies, refused, tunnelRoute } from './rest-context.ts';

/** Maximum flows in the response of GET /api/tunnels/:id/flows. The most recently active flows are shown. */
export const API_FLOWS_SHOWN = 200;

const listFlowsRoute = tunnelRoute({
  method: 'get',
  path: '/api/tunnels/{id}/flows',
  summary: 'List the flows of a udp tunnel, with drop counts and the datagram path',
  responses: {
    200: json(edgeFlows, 'Current flows.'),
    404: refused('No such udp tunnel in your account.'),
  },
});

export const addFlowRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.add(listFlowsRoute, (context) => {
    const tunnel = findTunnel(deps, context);
    const port = tunnel.protocol === 'udp' ? tunnel.assignedPort : null;
    const on = port === null ? undefined : deps.udp.at(port);
    if (on === undefined) throw new Fault('TUNNEL_UNKNOWN');
    const nowMs = deps.monotonic();
    const wallMs = deps.now();
    const flows = on.flows(API_FLOWS_SHOWN).map((flow) => show(flow, nowMs, wallMs));
    const { flowCount: total, dropped } = on;
    return context.json({ flows, total, dropped, ...deps.datagramPathOf(tunnel) }, 200);
  });
};

/** Fields of a flow without the internals of the flow table. */
type SeenFlow = Omit<Flow<never>, 'evict' | 'context' | 'account' | 'inWheel' | 'inTable' | 'ofAddress' | 'ofAccount'>;

const show = (flow: SeenFlow, nowMs: number, wallMs: number): EdgeFlow => ({
  visitor: hostPort(plainAddress(flow.address), flow.port),
  // The flow table has only monotonic times, so the start is converted to wall-clock time.
  since: new Date(wallMs - (nowMs - flow.since)).toISOString(),
  idle_ms: Math.max(0, Math.round(nowMs - flow.activeAt)),
  confirmed: flow.isConfirmed,
  datagrams_in: flow.datagramsIn,
  datagrams_out: flow.datagramsOut,
  bytes_in: flow.bytesIn,
  bytes_out: flow.bytesOut,
  dropped: flow.dropped,
});
