// Private parts of signing keys are encrypted text; a key that was replaced has none. What is there in clear is encrypted by the platform
// at its next start, because the key for that is not in the database.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    alter table signing_keys
      alter column private_key type text using private_key::text,
      alter column private_key drop not null,
      -- When another one took its place; null: it signs, or is older than the one that does.
      add column retired_at timestamptz
  `.execute(db);
};
