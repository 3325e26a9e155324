// What the log of tunnels tells of each beside its label: where visitors reach it, and the computer it runs on.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // null: not told, by an edge or a client of before.
  await sql`alter table tunnel_log add column public_url text, add column client_name text`.execute(db);
};
