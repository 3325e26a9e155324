// Which of these edges were shut out.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';

export const revokedAmong = async (db: Db, edgeIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db
    .selectFrom('edges')
    .select('id')
    .where(sql<boolean>`id = any(${edgeIds}::uuid[])`)
    .where('revoked_at', 'is not', null)
    .execute();
  return new Set(rows.map((row) => row.id));
};
