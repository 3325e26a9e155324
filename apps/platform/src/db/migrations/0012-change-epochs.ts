// Binds a requested change of the email address to the password used for the request: a new password cancels the change.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // For address changes, the account's epoch at the time of the request. A new password, a suspension and a deletion raise the epoch.
  await sql`alter table mail_requests add column epoch integer`.execute(db);
  await sql`alter table mail_tokens add column epoch integer`.execute(db);
};
