// What only edges know: captured requests, health, flows and peers of a tunnel, pools of all regions; and which regions there are.
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

/** The edges, by region, asked on behalf of an account. */
export interface TunnelEdges {
  requests(regionId: string, tunnelId: string, accountId: string, wanted: WantedRequests): Promise<CaptureList>;
  request(regionId: string, tunnelId: string, requestId: string, accountId: string): Promise<CapturedRequest>;
  /** One long poll. */
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
  /** `next_cursor` of an earlier answer; left out: from the newest on. */
  readonly cursor?: string | undefined;
  /** Only those that a rule of the tunnel answered, or only those that its service got; left out: all. */
  readonly answered?: boolean | undefined;
}

/** Which request one long poll is for. */
export interface NextRequest {
  readonly method?: string | undefined;
  readonly pathContains?: string | undefined;
  /** The cursor of the poll before. */
  readonly after?: string | undefined;
  readonly withinSecs: number;
  readonly signal: AbortSignal;
}

export interface TunnelEdgeContext extends Pick<ServiceContext, 'db'> {
  readonly edges: TunnelEdges;
}

/**
 * What only the edge of a tunnel knows: its captured requests, its health, its flows and peers. The log says whose it is and where it ran.
 */
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

/** One captured request, for as long as its edge keeps it. */
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
    // The tunnel is in the log: its edge has forgotten it, and its requests.
    if (error.code === 'TUNNEL_UNKNOWN') throw new Fault('CAPTURE_UNKNOWN');
    // An edge of before: there is no such path, and the list has what it keeps.
    if (error.code !== 'API_NOT_FOUND') throw error;
    const { requests } = await listRequests(context, actor, id, { limit: CAPTURE_LIST_LIMIT.max });
    const found = requests.find((request) => request.id === requestId);
    if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return found;
  });
};

/** Its client is told, and does not register it again. TUNNEL_CLOSED: it has ended already. */
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

/** POLICY_ABSENT: everyone may visit it. TUNNEL_UNKNOWN: it has ended, and nothing is kept of its rules. */
export const showPolicy = async (context: TunnelEdgeContext, actor: UserActor, id: string): Promise<TunnelPolicy> => {
  const entry = await findTunnel(context, actor, id);
  const regionId = livingRegion(entry);
  if (regionId === null) throw new Fault('TUNNEL_UNKNOWN');
  try {
    return await context.edges.policy(regionId, entry.tunnel_id, actor.userId);
  } catch (error) {
    // An edge of before knows no policies, so that its tunnels have none.
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

/** An edge keeps flows, peers and health for as long as the tunnel lives; null: there is nobody to ask. */
export const livingRegion = ({ unregistered_at, region_id }: TunnelLogEntry): string | null =>
  unregistered_at === null ? region_id : null;

/** The path of a tunnel that is not there: no datagram goes over UDP. */
const noFlows = (): EdgeFlows => ({
  flows: [],
  total: 0,
  dropped: Object.fromEntries(dropReason.options.map((reason) => [reason, 0])) as EdgeFlows['dropped'],
  path: 'carrier',
  reason: 'off',
});

/** What tunnels of another protocol are told. */
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

/** The tunnel is in the log, so that an edge which knows it no longer has nothing to tell. */
const orWhenForgotten = async <T>(answer: Promise<T>, nothing: T): Promise<T> => {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Fault && error.code === 'TUNNEL_UNKNOWN') return nothing;
    throw error;
  }
};

/** The edges of all regions; one that does not answer is a warning. */
export interface GroupEdges {
  groups(accountId: string): Promise<PlatformPools>;
}

/** The load-balanced pools that hold a living tunnel of the caller, of all regions. */
export const listGroups = async ({ edges }: { edges: GroupEdges }, { userId }: UserActor): Promise<PlatformPools> => {
  const { groups, warnings } = await edges.groups(userId);
  return {
    groups: groups.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
    warnings: warnings.toSorted(),
  };
};

/** One group has one endpoint in a region: no two keys are equal. */
const sortKey = ({ region_id, protocol, label }: GroupSummary): string => [region_id, protocol, label].join('\0');

/**
 * The regions that are there now, and how clients and visitors come to them. A region with several edges is shown by the one
 * that was heard last.
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
