// What only the edge of a tunnel knows: its captured requests and its health. The log says whose it is and where it ran.
import type { CapturedRequest, CaptureList, HealthEvent, TunnelLogEntry } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ServiceContext, UserActor } from '../service-context.ts';
import { findTunnel } from './find-tunnel.ts';

/** The edges, by region, asked on behalf of an account. */
export interface TunnelEdges {
  requests(regionId: string, tunnelId: string, accountId: string, limit: number): Promise<CaptureList>;
  replay(regionId: string, tunnelId: string, requestId: string, accountId: string): Promise<CapturedRequest>;
  healthEvents(regionId: string, tunnelId: string, accountId: string): Promise<HealthEvent[]>;
}

export interface AskContext extends Pick<ServiceContext, 'db'> {
  readonly edges: TunnelEdges;
}

export const listRequests = async (
  context: AskContext,
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
  context: AskContext,
  actor: UserActor,
  id: string,
  requestId: string,
): Promise<CapturedRequest> => {
  const { tunnel_id: tunnelId, region_id: regionId } = await findHttpTunnel(context, actor, id);
  if (regionId === null) throw new Fault('CAPTURE_UNKNOWN');
  return context.edges.replay(regionId, tunnelId, requestId, actor.userId);
};

export const listHealthEvents = async (context: AskContext, actor: UserActor, id: string): Promise<HealthEvent[]> => {
  const entry = await findTunnel(context, actor, id);
  // An edge keeps them for as long as the tunnel lives.
  if (entry.unregistered_at !== null || entry.region_id === null) return [];
  return orWhenForgotten(context.edges.healthEvents(entry.region_id, entry.tunnel_id, actor.userId), []);
};

const findHttpTunnel = async (context: AskContext, actor: UserActor, id: string): Promise<TunnelLogEntry> => {
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
