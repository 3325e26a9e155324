// Adds the payment card of an account as shown to people: brand and last four digits, both or neither.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['billing_accounts'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    alter table billing_accounts
      add column card_brand text,
      add column card_last4 text,
      add constraint billing_accounts_card check ((card_brand is null) = (card_last4 is null))
  `.execute(db);
};
