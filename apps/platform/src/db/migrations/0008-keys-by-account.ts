// Adds an index of all keys of an account, including revoked keys. Without the index, deleting an account would scan the keys of all
// accounts.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['api_keys'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`create index api_keys_by_user on api_keys (user_id)`.execute(db);
};
