// The invitation for the first account of a database: for any address, and without an end.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Both are null for that invitation, and for no other.
  await sql`
    alter table invites
      alter column email drop not null,
      alter column expires_at drop not null,
      add constraint invites_of_an_address check ((email is null) = (expires_at is null))`.execute(db);
  // However many servers start on one database, there is one such invitation.
  await sql`create unique index invites_first_account on invites ((email is null)) where email is null`.execute(db);
};
