// Which changes there still are.
import type { Db } from '../../db/database.ts';

export interface KeptChanges {
  /** Of the oldest that is kept; 1 when there never was one. */
  readonly oldest: number;
  /** 0 when there never was one. */
  readonly latest: number;
}

export const keptChanges = async (db: Db): Promise<KeptChanges> => {
  const row = await db
    .selectFrom('edge_changes')
    .select((rows) => [rows.fn.min('id').as('oldest'), rows.fn.max('id').as('latest')])
    .executeTakeFirst();
  return { oldest: row?.oldest ?? 1, latest: row?.latest ?? 0 };
};
