// Open tunnels with the state known only to their edges: health, group and opening time. The log has the tunnels' accounts. If an edge is
// unreachable or no longer knows a tunnel, the log entry is returned unchanged.
import type { EdgeTunnel, TunnelLogEntry, UnguardedTunnels } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { findTunnel, listTunnels } from './tunnel-log.ts';

/** Calls to the edges on behalf of an account. */
export interface LivingTunnelEdges {
  /** Lists the account's tunnels in all regions. Tunnels of edges that do not respond are missing. */
  tunnels(accountId: string): Promise<EdgeTunnel[]>;
  tunnel(regionId: string, tunnelId: string, accountId: string): Promise<EdgeTunnel>;
}

export interface LivingTunnelContext extends Pick<ServiceContext, 'db'> {
  readonly edges: LivingTunnelEdges;
}

/** Lists open tunnels, newest first, at most `limit`. */
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

/** Finds a tunnel. A tunnel that has ended is returned as a log entry. Throws TUNNEL_UNKNOWN, even if another account has the tunnel. */
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

/** Policy actions that keep visitors out, unlike rate limits or headers. */
const GUARDS: readonly string[] = ['deny', 'allow_addresses', 'auth', 'verify_webhook'];

/**
 * Returns true if no policy action protects the tunnel. p2p tunnels are protected by a secret. An edge that reports no policies does not
 * support policies.
 */
const isUnguarded = ({ protocol, policy }: EdgeTunnel): boolean =>
  protocol !== 'p2p' && !(policy?.actions ?? []).some((action) => GUARDS.includes(action));

/** Lists open tunnels that anyone with the address can visit. Tunnels of unreachable edges are missing. */
export const listUnguarded = async (
  { edges }: { readonly edges: Pick<LivingTunnelEdges, 'tunnels'> },
  { userId }: UserActor,
): Promise<UnguardedTunnels> => {
  const living = await edges.tunnels(userId);
  return { tunnel_ids: living.filter(isUnguarded).map(({ tunnel_id }) => tunnel_id) };
};
