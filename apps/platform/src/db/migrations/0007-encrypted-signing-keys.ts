// Changes the private parts of signing keys to encrypted text; a replaced key has no private part. The platform encrypts existing
// unencrypted keys at its next start, because the master key is not in the database.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['signing_keys'];

/** Version 0.1.0 was the first release, so no earlier release reads unencrypted keys. */
export const unusedSince = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    alter table signing_keys
      alter column private_key type text using private_key::text,
      alter column private_key drop not null,
      -- When another one took its place; null: it signs, or is older than the one that does.
      add column retired_at timestamptz
  `.execute(db);
};
