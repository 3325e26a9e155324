// The tunnels that wait for their place, of an account: left out of its log, whatever else it has open.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create index tunnel_log_without_place on tunnel_log (user_id) where unregistered_at is null and label = ''
  `.execute(db);
};
