// Which keys an account has, revoked ones too: without it an account that is deleted reads all keys there are.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`create index api_keys_by_user on api_keys (user_id)`.execute(db);
};
