// The account an operator means, locked until the deed is done.
import { normalizeAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

export interface FoundAccount {
  readonly id: string;
  readonly email: string;
  readonly status: 'active' | 'suspended';
  readonly plan: string;
}

export const lockAccountOf = async (trx: Transaction<Schema>, email: string): Promise<FoundAccount> => {
  const address = normalizeAddress(email);
  const account = await trx
    .selectFrom('users')
    .select(['id', 'email', 'status', 'plan'])
    .where('email', '=', address)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (account === undefined) throw new Fault('USER_UNKNOWN', { email: address });
  return account;
};
