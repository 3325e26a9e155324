// State known only to edges: captured requests, health, flows and peers of a tunnel, and groups of all regions. Also lists the regions.
import {
  type AwaitedRequest,
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  dropReason,
  type EdgeFlows,
  type EdgePeers,
  type GroupSummary,
  type HealthEvent,
  type PlatformPools,
  type ReplayEdit,
  type ShownProtocol,
  type TunnelLogEntry,
  type TunnelPolicy,
  type UsageRegion,
} from '@tunnel/contract';
import { type ErrorCode, Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import { LIMITS } from '../../limits.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { findTunnel } from './tunnel-log.ts';

/** Calls to the edge of a region on behalf of an account. */
export interface TunnelEdges {
  requests(regionId: string, tunnelId: string, accountId: string, wanted: WantedRequests): Promise<CaptureList>;
  request(regionId: string, tunnelId: string, requestId: string, accountId: string): Promise<CapturedRequest>;
  /** Sends a single long poll for the next request. */
  nextRequest(regionId: string, tunnelId: string, accountId: string, filter: NextRequest): Promise<AwaitedRequest>;
  closeTunnel(regionId: string, tunnelId: string, accountId: string): Promise<void>;
  replay(
    regionId: string,
    tunnelId: string,
    requestId: string,
    accountId: string,
    edit: ReplayEdit,
  ): Promise<CapturedRequest>;
  healthEvents(regionId: string, tunnelId: string, accountId: string): Promise<HealthEvent[]>;
  policy(regionId: string, tunnelId: string, accountId: string): Promise<TunnelPolicy>;
  flows(regionId: string, tunnelId: string, accountId: string): Promise<EdgeFlows>;
  peers(regionId: string, tunnelId: string, accountId: string): Promise<EdgePeers>;
  dismissPeer(regionId: string, tunnelId: string, peerId: string, accountId: string): Promise<void>;
}

export interface WantedRequests {
  readonly limit: number;
  /** Value of `next_cursor` in an earlier response. Without a cursor, the list starts with the newest request. */
  readonly cursor?: string | undefined;
  /** True: only requests answered by a rule of the tunnel. False: only requests forwarded to its service. Without a value: all requests. */
  readonly answered?: boolean | undefined;
}

/** Parameters of a long poll for the next request. */
export interface NextRequest {
  readonly method?: string | undefined;
  readonly pathContains?: string | undefined;
  /** Cursor returned by the previous long poll. */
  readonly after?: string | undefined;
  readonly withinSecs: number;
  readonly signal: AbortSignal;
}

export interface TunnelEdgeContext extends Pick<ServiceContext, 'db'> {
  readonly edges: TunnelEdges;
}

/** Lists captured requests of a tunnel, which only the tunnel's edge has. The log has the tunnel's account and region. */
export const listRequests = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  wanted: WantedRequests,
): Promise<CaptureList> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findOfProtocol(context, actor, id, 'http');
  const nothing: CaptureList = { tunnel_id: tunnelId, requests: [], truncated: false, next_cursor: null };
  if (regionId === null) return nothing;
  return orWhenForgotten(context.edges.requests(regionId, tunnelId, actor.userId, wanted), nothing);
};

/** Finds a captured request, as long as the edge keeps it. */
export const findRequest = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  requestId: string,
): Promise<CapturedRequest> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findOfProtocol(context, actor, id, 'http');
  if (regionId === null) throw new Fault('CAPTURE_UNKNOWN');
  const find = context.edges.request(regionId, tunnelId, requestId, actor.userId);
  return find.catch(async (error: unknown) => {
    if (!(error instanceof Fault)) throw error;
    // The tunnel is in the log, so the edge has forgotten the tunnel together with its requests.
    if (error.code === 'TUNNEL_UNKNOWN') throw new Fault('CAPTURE_UNKNOWN');
    // An edge of an earlier version does not have the path for a single request, but has the request in its list.
    if (error.code !== 'API_NOT_FOUND') throw error;
    const { requests } = await listRequests(context, actor, id, { limit: CAPTURE_LIST_LIMIT.max });
    const found = requests.find((request) => request.id === requestId);
    if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return found;
  });
};

/** Closes a tunnel. The client is notified and does not open the tunnel again. Throws TUNNEL_CLOSED if the tunnel has already ended. */
export const closeTunnel = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
): Promise<{ readonly tunnel_id: string }> => {
  const entry = await findTunnel(context, actor, id);
  const { tunnel_id } = entry;
  const regionId = livingRegion(entry);
  if (regionId === null) throw new Fault('TUNNEL_CLOSED');
  await context.edges.closeTunnel(regionId, tunnel_id, actor.userId);
  await writeAudit(context.db, {
    actor: actorName(actor),
    action: 'tunnel.closed',
    userId: actor.userId,
    details: { tunnel_id },
  });
  return { tunnel_id };
};

export const replayRequest = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  requestId: string,
  edit: ReplayEdit = {},
): Promise<CapturedRequest> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findOfProtocol(context, actor, id, 'http');
  if (regionId === null) throw new Fault('CAPTURE_UNKNOWN');
  return context.edges.replay(regionId, tunnelId, requestId, actor.userId, edit);
};

export const listHealthEvents = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
): Promise<HealthEvent[]> => {
  const entry = await findTunnel(context, actor, id);
  const regionId = livingRegion(entry);
  if (regionId === null) return [];
  return orWhenForgotten(context.edges.healthEvents(regionId, entry.tunnel_id, actor.userId), []);
};

/**
 * Returns the policy of a tunnel. Throws POLICY_ABSENT if the tunnel is public without a policy, and TUNNEL_UNKNOWN if the tunnel has
 * ended, because policies of ended tunnels are not kept.
 */
export const showPolicy = async (context: TunnelEdgeContext, actor: UserActor, id: string): Promise<TunnelPolicy> => {
  const entry = await findTunnel(context, actor, id);
  const regionId = livingRegion(entry);
  if (regionId === null) throw new Fault('TUNNEL_UNKNOWN');
  try {
    return await context.edges.policy(regionId, entry.tunnel_id, actor.userId);
  } catch (error) {
    // An edge of an earlier version does not support policies, so its tunnels have none.
    if (error instanceof Fault && error.code === 'API_NOT_FOUND') throw new Fault('POLICY_ABSENT');
    throw error;
  }
};

export const listFlows = async (context: TunnelEdgeContext, actor: UserActor, id: string): Promise<EdgeFlows> => {
  const entry = await findOfProtocol(context, actor, id, 'udp');
  const regionId = livingRegion(entry);
  if (regionId === null) return noFlows();
  return orWhenForgotten(context.edges.flows(regionId, entry.tunnel_id, actor.userId), noFlows());
};

export const listPeers = async (context: TunnelEdgeContext, actor: UserActor, id: string): Promise<EdgePeers> => {
  const entry = await findOfProtocol(context, actor, id, 'p2p');
  const regionId = livingRegion(entry);
  const nobody: EdgePeers = { peers: [], total: 0 };
  if (regionId === null) return nobody;
  return orWhenForgotten(context.edges.peers(regionId, entry.tunnel_id, actor.userId), nobody);
};

export const dismissPeer = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  peerId: string,
): Promise<void> => {
  const entry = await findOfProtocol(context, actor, id, 'p2p');
  const regionId = livingRegion(entry);
  if (regionId === null) throw new Fault('P2P_PEER_UNKNOWN');
  await context.edges.dismissPeer(regionId, entry.tunnel_id, peerId, actor.userId);
};

/**
 * Region of an open tunnel, for queries about flows, peers and health, which an edge keeps only while the tunnel is open. Returns null if
 * no edge can be queried.
 */
export const livingRegion = ({ unregistered_at, region_id }: TunnelLogEntry): string | null =>
  unregistered_at === null ? region_id : null;

/** Flows of a tunnel that is not open: no flows, and no datagrams over UDP. */
const noFlows = (): EdgeFlows => ({
  flows: [],
  total: 0,
  dropped: Object.fromEntries(dropReason.options.map((reason) => [reason, 0])) as EdgeFlows['dropped'],
  path: 'carrier',
  reason: 'off',
});

/** Error code for a tunnel of another protocol, by the required protocol. */
const NOT_THAT = {
  http: 'TUNNEL_NOT_HTTP',
  udp: 'TUNNEL_NOT_UDP',
  p2p: 'TUNNEL_NOT_P2P',
} as const satisfies Partial<Record<ShownProtocol, ErrorCode>>;

export const findOfProtocol = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  protocol: keyof typeof NOT_THAT,
): Promise<TunnelLogEntry> => {
  const entry = await findTunnel(context, actor, id);
  if (entry.protocol !== protocol) throw new Fault(NOT_THAT[protocol], { protocol: entry.protocol });
  return entry;
};

/**
 * Returns the edge's answer, or `nothing` if the edge no longer knows the tunnel. The tunnel is in the log, so an unknown tunnel is not
 * an error.
 */
const orWhenForgotten = async <T>(answer: Promise<T>, nothing: T): Promise<T> => {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Fault && error.code === 'TUNNEL_UNKNOWN') return nothing;
    throw error;
  }
};

/** Calls to the edges of all regions. An edge that does not respond causes a warning instead of an error. */
export interface GroupEdges {
  groups(accountId: string): Promise<PlatformPools>;
}

/** Lists the load-balanced groups of all regions that contain an open tunnel of the caller. */
export const listGroups = async ({ edges }: { edges: GroupEdges }, { userId }: UserActor): Promise<PlatformPools> => {
  const { groups, warnings } = await edges.groups(userId);
  return {
    groups: groups.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
    warnings: warnings.toSorted(),
  };
};

/** Unique key of a group, for sorting: a group has only one endpoint in a region. */
const sortKey = ({ region_id, protocol, label }: GroupSummary): string => [region_id, protocol, label].join('\0');

/**
 * Lists the regions with a recent heartbeat, and the addresses for clients and visitors. A region with several edges is represented by
 * the edge with the latest heartbeat.
 */
export const listRegions = async ({ db, clock }: Pick<ServiceContext, 'db' | 'clock'>): Promise<UsageRegion[]> => {
  const heardSince = new Date(clock.now() - LIMITS.EDGE_RECENT_MS);
  const { rows } = await sql<UsageRegion>`
    select distinct on (region_id) region_id, region_name as name, location, control, control_tls, http_url
    from edges
    where revoked_at is null and region_id is not null and last_heartbeat_at >= ${heardSince}
    order by region_id, last_heartbeat_at desc`.execute(db);
  return rows;
};
