// What only edges know: captured requests and the health of a tunnel, pools of all regions; and which regions there are.
import type {
  CapturedRequest,
  CaptureList,
  GroupSummary,
  HealthEvent,
  PlatformPools,
  TunnelLogEntry,
  UsageRegion,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import { LIMITS } from '../../limits.ts';
import type { ServiceContext, UserActor } from '../service-context.ts';
import { findTunnel } from './tunnel-log.ts';

/** The edges, by region, asked on behalf of an account. */
export interface TunnelEdges {
  requests(regionId: string, tunnelId: string, accountId: string, limit: number): Promise<CaptureList>;
  replay(regionId: string, tunnelId: string, requestId: string, accountId: string): Promise<CapturedRequest>;
  healthEvents(regionId: string, tunnelId: string, accountId: string): Promise<HealthEvent[]>;
}

export interface TunnelEdgeContext extends Pick<ServiceContext, 'db'> {
  readonly edges: TunnelEdges;
}

/**
 * What only the edge of a tunnel knows: its captured requests and its health. The log says whose it is and where it ran.
 */
export const listRequests = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  limit: number,
): Promise<CaptureList> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findHttpTunnel(context, actor, id);
  const nothing: CaptureList = { tunnel_id: tunnelId, requests: [], truncated: false };
  if (regionId === null) return nothing;
  return orWhenForgotten(context.edges.requests(regionId, tunnelId, actor.userId, limit), nothing);
};

export const replayRequest = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
  requestId: string,
): Promise<CapturedRequest> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findHttpTunnel(context, actor, id);
  if (regionId === null) throw new Fault('CAPTURE_UNKNOWN');
  return context.edges.replay(regionId, tunnelId, requestId, actor.userId);
};

export const listHealthEvents = async (
  context: TunnelEdgeContext,
  actor: UserActor,
  id: string,
): Promise<HealthEvent[]> => {
  const entry = await findTunnel(context, actor, id);
  // An edge keeps them for as long as the tunnel lives.
  if (entry.unregistered_at !== null || entry.region_id === null) return [];
  return orWhenForgotten(context.edges.healthEvents(entry.region_id, entry.tunnel_id, actor.userId), []);
};

const findHttpTunnel = async (context: TunnelEdgeContext, actor: UserActor, id: string): Promise<TunnelLogEntry> => {
  const entry = await findTunnel(context, actor, id);
  if (entry.protocol !== 'http') throw new Fault('TUNNEL_NOT_HTTP', { protocol: entry.protocol });
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
