// Creates the keys that sign access tokens. The keys are stored in the database instead of a file, so that every platform process accepts
// the tokens of the other processes.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table signing_keys (
      kid text primary key,
      public_key jsonb not null,
      private_key jsonb not null,
      -- The newest signs; all of them are accepted.
      created_at timestamptz not null default now()
    )`.execute(db);
};
