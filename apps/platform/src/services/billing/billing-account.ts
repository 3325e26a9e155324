// What we hold of an account's billing, as its row tells it.
import type { SubscriptionState } from '@tunnel/core';
import type { Selectable, Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { BillingAccountsTable, Schema } from '../../db/schema.ts';

export type BillingAccount = Selectable<BillingAccountsTable>;

/** undefined: nothing is held yet. */
export const findAccount = (db: Db | Transaction<Schema>, userId: string): Promise<BillingAccount | undefined> =>
  db.selectFrom('billing_accounts').selectAll().where('user_id', '=', userId).executeTakeFirst();

export const heldSubscription = (account: BillingAccount): SubscriptionState => ({
  id: account.subscription_id,
  status: account.subscription_status,
  cancelsAtPeriodEnd: account.cancels_at_period_end,
  periodEnd: account.current_period_end?.getTime() ?? null,
  meteredFrom: account.metered_from?.getTime() ?? null,
  pastDueSince: account.past_due_since?.getTime() ?? null,
  pastDueMailedAt: account.past_due_mailed_at?.getTime() ?? null,
});
