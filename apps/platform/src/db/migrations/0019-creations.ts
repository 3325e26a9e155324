// How many keys, reservations, domains and connected apps an account has made today, by which a day's number is bounded.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // The day is UTC's; null: the account has made none yet.
  await sql`alter table users add column created_on date, add column created_count integer not null default 0`.execute(
    db,
  );
  // Revoked keys beyond those that are kept are found by it.
  await sql`create index api_keys_revoked on api_keys (user_id, revoked_at) where status = 'revoked'`.execute(db);
};
