// The account's customer at the processor, made at the first call that needs one.

import { findAccount } from './billing-account.ts';
import type { BillingContext } from './billing-context.ts';

type Context = Pick<BillingContext, 'db' | 'processor' | 'locks'>;

export const ensureCustomer = async ({ db, processor, locks }: Context, userId: string): Promise<string> => {
  const known = (await findAccount(db, userId))?.customer_id;
  if (known != null) return known;
  return locks.hold(userId, async (trx) => {
    const made = (await findAccount(trx, userId))?.customer_id;
    if (made != null) return made;
    const { email, name } = await trx
      .selectFrom('users')
      .select(['email', 'display_name as name'])
      .where('id', '=', userId)
      .executeTakeFirstOrThrow();
    const customer_id = await processor.ensureCustomer({ userId, email, name });
    await trx
      .insertInto('billing_accounts')
      .values({ user_id: userId, customer_id })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ customer_id }))
      .execute();
    return customer_id;
  });
};
