// Creation of an account: validation of the address, and the row in the database.

import { Fault } from '@tunnel/errors';
import { isAddress, normalizeAddress } from '@tunnel/rules/sign-in';
import type { Insertable, Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

/** Returns the normalized address. Throws API_BAD_REQUEST with the name of the field if the text is not an email address. */
export const newAddress = (email: string, field: string): string => {
  const address = normalizeAddress(email);
  if (!isAddress(address)) throw new Fault('API_BAD_REQUEST', { reason: `${field}: must be an email address` });
  return address;
};

/** Plan of every new account. One of the plans in [platform.plans]. */
const FIRST_PLAN = 'free';

type NewUser = Pick<
  Insertable<Schema['users']>,
  'email' | 'password_hash' | 'display_name' | 'created_at' | 'email_verified_at'
>;

/**
 * Inserts a user and returns the new id. Throws ACCOUNT_EXISTS if an account has the address; the unique index decides, regardless of
 * earlier checks.
 */
export const insertUser = async (trx: Transaction<Schema>, user: NewUser): Promise<string> => {
  const made = await trx
    .insertInto('users')
    .values({ ...user, plan: FIRST_PLAN })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst();
  if (made === undefined) throw new Fault('ACCOUNT_EXISTS');
  return made.id;
};
