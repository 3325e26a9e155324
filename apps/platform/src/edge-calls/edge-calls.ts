// Calls from the platform to edges: to all regions at once for groups, and to the region of a tunnel for captures, health, flows and
// peers.
import {
  awaitedRequest,
  capturedRequest,
  captureList,
  edgeFlows,
  edgePeers,
  edgeTunnel,
  edgeTunnels,
  type GroupSummary,
  groupSummaries,
  healthEvents,
  tunnelPolicy,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import * as z from 'zod';
import type { Db } from '../db/database.ts';
import type { MasterKey } from '../db/master-key.ts';
import { LIMITS } from '../limits.ts';
import type { GroupEdges, TunnelEdges } from '../services/usage/edge-state.ts';
import type { LivingTunnelEdges } from '../services/usage/living-tunnels.ts';
import {
  callEdge,
  edgeOfTunnel,
  edgesWithPools,
  edgesWithTunnels,
  type LocalEdge,
  type ReachableEdge,
} from './call-edge.ts';

/** Time limit for an edge to list its groups. Short, because a dashboard page waits for all edges. */
const EDGE_GROUPS_TIMEOUT_MS = 2000;
/** Time limit for calls to an edge other than listing groups and replays; then the call fails with `EDGE_AWAY`. */
const EDGE_CALL_TIMEOUT_MS = 5000;
/** Time limit for a replay. Longer than the 30 s an edge gives the local service. */
const EDGE_REPLAY_TIMEOUT_MS = 35_000;

/** Calls to edges, used by the services. Fail with TUNNEL_UNKNOWN if the edge no longer stores anything about the tunnel. */
export type EdgeCalls = GroupEdges & TunnelEdges & LivingTunnelEdges;

export interface EdgeCallsOptions {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns the master key. Only available once the database tables exist. */
  readonly masterKey: () => MasterKey;
  /** The edge of the same stack. Null or absent without such an edge. */
  readonly localEdge?: LocalEdge | null;
  /** Function used instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

const GROUPS_MS = EDGE_GROUPS_TIMEOUT_MS;
const CALL_MS = EDGE_CALL_TIMEOUT_MS;
const REPLAY_MS = EDGE_REPLAY_TIMEOUT_MS;

export const createEdgeCalls = (deps: EdgeCallsOptions): EdgeCalls => ({
  groups: async (accountId) => {
    const since = new Date(deps.clock.now() - LIMITS.EDGE_RECENT_MS);
    const edges = await edgesWithPools(deps.db, accountId, since);
    const question = { method: 'GET', path: '/api/groups', accountId, timeoutMs: GROUPS_MS } as const;
    const answers = await Promise.allSettled(edges.map((edge) => callEdge(deps, edge, question, groupSummaries)));
    const groups = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const silent = edges.filter((_, index) => answers[index]?.status === 'rejected');
    return { groups: mergeGroups(groups), warnings: warningsOf(silent) };
  },

  tunnels: async (accountId) => {
    const edges = await edgesWithTunnels(deps.db, accountId);
    const question = { method: 'GET', path: '/api/tunnels', accountId, timeoutMs: GROUPS_MS } as const;
    const answers = await Promise.allSettled(edges.map((edge) => callEdge(deps, edge, question, edgeTunnels)));
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  },

  tunnel: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    return callEdge(
      deps,
      edge,
      { method: 'GET', path: tunnelPath(tunnelId), accountId, timeoutMs: CALL_MS },
      edgeTunnel,
    );
  },

  ...requestCalls(deps),

  closeTunnel: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const question = { method: 'DELETE', path: tunnelPath(tunnelId), accountId, timeoutMs: CALL_MS } as const;
    await callEdge(deps, edge, question, z.null());
  },

  healthEvents: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${tunnelPath(tunnelId)}/health-events`;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, healthEvents);
  },

  policy: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${tunnelPath(tunnelId)}/policy`;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, tunnelPolicy);
  },

  flows: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${tunnelPath(tunnelId)}/flows`;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, edgeFlows);
  },

  peers: async (regionId, tunnelId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${tunnelPath(tunnelId)}/peers`;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, edgePeers);
  },

  dismissPeer: async (regionId, tunnelId, peerId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${tunnelPath(tunnelId)}/peers/${encodeURIComponent(peerId)}`;
    await callEdge(deps, edge, { method: 'DELETE', path, accountId, timeoutMs: CALL_MS }, z.null());
  },
});

/** Calls about the requests of http tunnels: list and read captures, wait for the next request, replay a request. */
const requestCalls = (deps: EdgeCallsOptions): Pick<EdgeCalls, 'requests' | 'request' | 'nextRequest' | 'replay'> => ({
  requests: async (regionId, tunnelId, accountId, { limit, cursor, answered }) => {
    const edge = await reach(deps, regionId, tunnelId);
    const query = new URLSearchParams({
      limit: String(limit),
      ...(cursor === undefined ? {} : { cursor }),
      ...(answered === undefined ? {} : { answered: String(answered) }),
    });
    const path = `${tunnelPath(tunnelId)}/requests?${query.toString()}`;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, captureList);
  },

  request: async (regionId, tunnelId, requestId, accountId) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = requestPath(tunnelId, requestId);
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs: CALL_MS }, capturedRequest);
  },

  nextRequest: async (regionId, tunnelId, accountId, filter) => {
    const edge = await reach(deps, regionId, tunnelId);
    const { method, pathContains, after, withinSecs, signal } = filter;
    const query = new URLSearchParams({
      timeout_secs: String(withinSecs),
      ...(method === undefined ? {} : { method }),
      ...(pathContains === undefined ? {} : { path_contains: pathContains }),
      ...(after === undefined ? {} : { after }),
    });
    const path = `${tunnelPath(tunnelId)}/requests/next?${query.toString()}`;
    const timeoutMs = withinSecs * 1000 + CALL_MS;
    return callEdge(deps, edge, { method: 'GET', path, accountId, timeoutMs, signal }, awaitedRequest);
  },

  replay: async (regionId, tunnelId, requestId, accountId, edit) => {
    const edge = await reach(deps, regionId, tunnelId);
    const path = `${requestPath(tunnelId, requestId)}/replay`;
    const question = { method: 'POST', path, accountId, timeoutMs: REPLAY_MS, body: edit } as const;
    return callEdge(deps, edge, question, capturedRequest);
  },
});

const tunnelPath = (tunnelId: string): string => `/api/tunnels/${encodeURIComponent(tunnelId)}`;

/**
 * Returns the path of a captured request. Throws CAPTURE_UNKNOWN for `.`, `..` and `next`, which would lead to another path and are never
 * ids.
 */
const requestPath = (tunnelId: string, requestId: string): string => {
  if (/^(?:\.{0,2}|next)$/.test(requestId)) throw new Fault('CAPTURE_UNKNOWN');
  return `${tunnelPath(tunnelId)}/requests/${encodeURIComponent(requestId)}`;
};

const reach = async ({ db }: EdgeCallsOptions, regionId: string, tunnelId: string): Promise<ReachableEdge> => {
  const edge = await edgeOfTunnel(db, regionId, tunnelId);
  if (edge === undefined) throw new Fault('EDGE_AWAY', { region: regionId });
  return edge;
};

const warningsOf = (silent: readonly ReachableEdge[]): string[] => {
  const regions = new Set(silent.map((edge) => edge.regionId));
  return [...regions].sort().map((region) => `region ${region} did not answer: groups in this region are missing`);
};

/** Merges the groups of several edges into one list. A group with members on several edges of a region is shown as one group. */
const mergeGroups = (groups: readonly GroupSummary[]): GroupSummary[] => {
  const merged = new Map<string, GroupSummary>();
  for (const group of groups) {
    const key = JSON.stringify([group.region_id, group.protocol, group.label, group.name, group.key_hash_short]);
    const known = merged.get(key);
    merged.set(key, known === undefined ? group : joined(known, group));
  }
  return [...merged.values()];
};

const joined = (a: GroupSummary, b: GroupSummary): GroupSummary => ({
  ...a,
  member_count: a.member_count + b.member_count,
  healthy_count: a.healthy_count + b.healthy_count,
  unhealthy_count: a.unhealthy_count + b.unhealthy_count,
  total_dispatches: a.total_dispatches + b.total_dispatches,
  total_health_failures: a.total_health_failures + b.total_health_failures,
  members: [...a.members, ...b.members],
});
