// A change of an address holds only for as long as the password does that it was asked for with.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Of a change: that of the account when it was asked for. A new password, a suspension and a deletion raise it.
  await sql`alter table mail_requests add column epoch integer`.execute(db);
  await sql`alter table mail_tokens add column epoch integer`.execute(db);
};
