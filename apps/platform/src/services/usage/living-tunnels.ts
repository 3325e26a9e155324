// Tunnels that live, as the edges that they live at know them: whether they are healthy, in which group, since when. The log says whose they are; an
// edge that is away, or knows one no longer, leaves its entry as it is.
import type { EdgeTunnel, TunnelLogEntry, UnguardedTunnels } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { findTunnel, listTunnels } from './tunnel-log.ts';

/** The edges, asked on behalf of an account. */
export interface LivingTunnelEdges {
  /** Of all regions; those of an edge that does not answer are missing. */
  tunnels(accountId: string): Promise<EdgeTunnel[]>;
  tunnel(regionId: string, tunnelId: string, accountId: string): Promise<EdgeTunnel>;
}

export interface LivingTunnelContext extends Pick<ServiceContext, 'db'> {
  readonly edges: LivingTunnelEdges;
}

/** Newest first, at most `limit`. */
export const listLivingTunnels = async (
  { db, edges }: LivingTunnelContext,
  actor: UserActor,
  limit: number,
): Promise<(EdgeTunnel | TunnelLogEntry)[]> => {
  const entries = await listTunnels({ db }, actor, { limit, offset: 0, state: 'active' });
  if (entries.length === 0) return [];
  const living = new Map((await edges.tunnels(actor.userId)).map((tunnel) => [tunnel.tunnel_id, tunnel]));
  return entries.map((entry) => living.get(entry.tunnel_id) ?? entry);
};

/** One that has ended is an entry of the log. TUNNEL_UNKNOWN, also when it is somebody else's. */
export const findLivingTunnel = async (
  { db, edges }: LivingTunnelContext,
  actor: UserActor,
  id: string,
): Promise<EdgeTunnel | TunnelLogEntry> => {
  const entry = await findTunnel({ db }, actor, id);
  if (entry.unregistered_at !== null || entry.region_id === null) return entry;
  try {
    return await edges.tunnel(entry.region_id, entry.tunnel_id, actor.userId);
  } catch (error) {
    if (error instanceof Fault && (error.code === 'TUNNEL_UNKNOWN' || error.code === 'EDGE_AWAY')) return entry;
    throw error;
  }
};

/** Actions that keep somebody out. A rate limit or headers alone do not. */
const GUARDS: readonly string[] = ['deny', 'allow_addresses', 'auth', 'verify_webhook'];

/** p2p tunnels have their secret. An edge that says nothing of policies knows none. */
const isUnguarded = ({ protocol, policy }: EdgeTunnel): boolean =>
  protocol !== 'p2p' && !(policy?.actions ?? []).some((action) => GUARDS.includes(action));

/** Living ones that anybody may visit who has the address. Those of an edge that is away are missing. */
export const listUnguarded = async (
  { edges }: { readonly edges: Pick<LivingTunnelEdges, 'tunnels'> },
  { userId }: UserActor,
): Promise<UnguardedTunnels> => {
  const living = await edges.tunnels(userId);
  return { tunnel_ids: living.filter(isUnguarded).map(({ tunnel_id }) => tunnel_id) };
};
