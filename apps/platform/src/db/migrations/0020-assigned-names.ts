// Which names were chosen by an edge, for tunnels that asked for none: they are held for a shorter time than names that an account chose.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Names from before are all taken for chosen ones: which of them an edge chose is not known any more.
  await sql`alter table names add column assigned boolean not null default false`.execute(db);
};
