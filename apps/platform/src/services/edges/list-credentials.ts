// The edges that were ever let in, newest first.
import type { OperatorContext } from '../operator-context.ts';

export interface ListedEdge {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  /** null: it was never heard. */
  readonly regionId: string | null;
  readonly version: string;
  readonly lastHeartbeatAt: Date | null;
}

export const listCredentials = async ({ db }: Pick<OperatorContext, 'db'>): Promise<ListedEdge[]> => {
  const rows = await db
    .selectFrom('edges')
    .select(['id', 'name', 'created_at', 'revoked_at', 'region_id', 'version', 'last_heartbeat_at'])
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    regionId: row.region_id,
    version: row.version,
    lastHeartbeatAt: row.last_heartbeat_at,
  }));
};
