// Adds the number of keys, reservations, domains and connected apps created by an account today, for the daily limit.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['api_keys'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // The day is in UTC. Null if the account has never created anything.
  await sql`alter table users add column created_on date, add column created_count integer not null default 0`.execute(
    db,
  );
  // Finds the oldest revoked keys of an account, beyond the number kept.
  await sql`create index api_keys_revoked on api_keys (user_id, revoked_at) where status = 'revoked'`.execute(db);
};
