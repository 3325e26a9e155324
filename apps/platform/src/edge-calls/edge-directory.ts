// Which edges there are to ask, and how each is reached.
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';

export interface ReachableEdge {
  readonly id: string;
  readonly name: string;
  readonly regionId: string;
  /** Empty: it is not reached over the network. */
  readonly apiUrl: string;
  readonly apiSecret: string;
}

interface EdgeRow {
  readonly id: string;
  readonly name: string;
  readonly region_id: string | null;
  readonly api_url: string;
  readonly api_secret: string;
}

const COLUMNS = sql`edges.id, edges.name, edges.region_id, edges.api_url, edges.api_secret`;

/** Those that were heard since, and those that hold an open entry of the account. */
export const edgesWithPools = async (db: Db, accountId: string, heardSince: Date): Promise<ReachableEdge[]> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    where revoked_at is null and region_id is not null and (
      last_heartbeat_at >= ${heardSince}
      or id in (select edge_id from tunnel_log where user_id = ${accountId} and unregistered_at is null)
    )
    order by region_id, id
  `.execute(db);
  return rows.map(edgeOf);
};

/** The edge that the tunnel is or was at; for an entry without one, the edge of its region that was heard last. */
export const edgeOfTunnel = async (db: Db, regionId: string, tunnelId: string): Promise<ReachableEdge | undefined> => {
  const { rows } = await sql<EdgeRow>`
    select ${COLUMNS} from edges
    left join tunnel_log on tunnel_log.tunnel_id = ${tunnelId}
    where edges.revoked_at is null and edges.region_id is not null
      and (edges.id = tunnel_log.edge_id or (tunnel_log.edge_id is null and edges.region_id = ${regionId}))
    order by edges.last_heartbeat_at desc nulls last
    limit 1
  `.execute(db);
  return rows[0] === undefined ? undefined : edgeOf(rows[0]);
};

const edgeOf = (row: EdgeRow): ReachableEdge => ({
  id: row.id,
  name: row.name,
  regionId: row.region_id ?? '',
  apiUrl: row.api_url,
  apiSecret: row.api_secret,
});
