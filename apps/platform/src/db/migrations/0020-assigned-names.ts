// Marks names chosen by an edge, for tunnels that requested no name. Such names are held for a shorter time than names chosen by an
// account.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Existing names count as chosen by their account, because the database does not record which names an edge chose.
  await sql`alter table names add column assigned boolean not null default false`.execute(db);
};
