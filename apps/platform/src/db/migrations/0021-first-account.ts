// Allows the invitation for the first account of a database, which is valid for any address and never expires.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['invites'];

/** Version 0.1.0 was the first release, so no earlier release writes other invitations. */
export const unusedSince = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Both columns are null for the first account's invitation, and set for all other invitations.
  await sql`
    alter table invites
      alter column email drop not null,
      alter column expires_at drop not null,
      add constraint invites_of_an_address check ((email is null) = (expires_at is null))`.execute(db);
  // However many servers start on a database, at most one invitation for the first account exists.
  await sql`create unique index invites_first_account on invites ((email is null)) where email is null`.execute(db);
};
