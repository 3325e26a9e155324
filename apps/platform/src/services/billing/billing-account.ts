// Shared parts of the billing services: the dependencies, and the stored billing state of an account.

import type { Selectable, Transaction } from 'kysely';
import type { AccountLocks } from '../../billing/account-locks.ts';
import type { Metering } from '../../billing/metering/metering.ts';
import type { Processor } from '../../billing/processor/processor.ts';
import type { SubscriptionState } from '../../billing/rules/subscription.rules.ts';
import type { Db } from '../../db/database.ts';
import type { BillingAccountsTable, Schema } from '../../db/schema.ts';
import type { ServiceContext } from '../shared/service-context.ts';

/** Dependencies of the billing services, in addition to those of every service. */
export interface BillingContext extends ServiceContext {
  readonly processor: Processor;
  readonly locks: AccountLocks;
  readonly metering: Pick<Metering, 'flush'>;
}

export type BillingAccount = Selectable<BillingAccountsTable>;

/** Reads the stored billing state of an account. Returns undefined if the account has no billing row yet. */
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
