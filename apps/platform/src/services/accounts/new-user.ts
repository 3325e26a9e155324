// A new account: what its address must be, and its row.

import { Fault } from '@tunnel/errors';
import { isAddress, normalizeAddress } from '@tunnel/rules/sign-in';
import type { Insertable, Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

/** Refused with the name of the field and the rule. */
export const newAddress = (email: string, field: string): string => {
  const address = normalizeAddress(email);
  if (!isAddress(address)) throw new Fault('API_BAD_REQUEST', { reason: `${field}: must be an email address` });
  return address;
};

/** Of [platform.plans]; every account begins with it. */
const FIRST_PLAN = 'free';

type NewUser = Pick<
  Insertable<Schema['users']>,
  'email' | 'password_hash' | 'display_name' | 'created_at' | 'email_verified_at'
>;

/** Its id. Throws ACCOUNT_EXISTS: the index decides, whoever looked before. */
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
