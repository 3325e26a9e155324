// Adds the public URL of a tunnel and the name of its computer to the tunnel log.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // The columns are null if the edge or the client is too old to report the values.
  await sql`alter table tunnel_log add column public_url text, add column client_name text`.execute(db);
};
