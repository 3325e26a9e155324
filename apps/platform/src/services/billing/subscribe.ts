// Starts the pay-as-you-go subscription, or returns the active subscription. The payment processor is queried instead of the local
// tables, so a late webhook or a crash between creating and storing a subscription never causes a second subscription.
import type { StartedSubscription } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { CustomerFacts, SubscriptionFacts } from '../../billing/processor/processor.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName } from '../shared/audit.ts';
import type { UserActor } from '../shared/service-context.ts';
import { type BillingAccount, type BillingContext, findAccount } from './billing-account.ts';
import { applyFacts, hasPaymentMethod } from './sync-account.ts';

export const subscribe = async (context: BillingContext, actor: UserActor): Promise<StartedSubscription> => {
  const { userId } = actor;
  try {
    return await context.locks.hold(userId, async (trx) => {
      const account = await findAccount(trx, userId);
      if (account === undefined || account.customer_id === null) throw new Fault('BILLING_NO_PAYMENT_METHOD');
      await refuseDeleted(trx, userId);
      const customer = await context.processor.readCustomer(account.customer_id);
      if (customer === null) throw new Fault('BILLING_NO_PAYMENT_METHOD');
      const present = await livingSubscription(context, account, customer);
      const facts = { ...customer, subscription: present };
      const { subscription, plan } = await applyFacts(context, trx, { account, facts, actor: actorName(actor) });
      return { status: subscription.status ?? present.status, plan, payment_subscription_id: present.id };
    });
  } catch (error) {
    // The processor remembers a rejection together with its idempotency key, so the next attempt needs another key.
    if (error instanceof Fault && error.code === 'BILLING_PROCESSOR_REFUSED') await takeNextKey(context, userId);
    throw error;
  }
};

/**
 * Throws if the account was deleted. Checked under the billing lock, so that a request from before the deletion cannot subscribe
 * afterwards.
 */
const refuseDeleted = async (trx: Transaction<Schema>, userId: string): Promise<void> => {
  const user = await trx.selectFrom('users').select('deleted_at').where('id', '=', userId).executeTakeFirst();
  if (user?.deleted_at !== null) throw new Fault('ACCESS_TOKEN_INVALID');
};

/**
 * Returns the customer's active subscription. A subscription set to end at the end of its period is continued; without an active
 * subscription, a new subscription is created.
 */
const livingSubscription = async (
  { processor }: BillingContext,
  account: BillingAccount,
  customer: CustomerFacts,
): Promise<SubscriptionFacts> => {
  const { subscription } = customer;
  const lives = subscription !== null && subscription.status !== 'canceled';
  if (lives && !subscription.cancelsAtPeriodEnd) return subscription;
  if (!hasPaymentMethod(customer)) throw new Fault('BILLING_NO_PAYMENT_METHOD');
  if (lives) return processor.keepSubscription(subscription.id);
  const { customer_id, user_id: userId, subscriptions } = account;
  const customerId = customer_id ?? '';
  const [first] = customer.paymentMethods;
  if (customer.defaultPaymentMethod === null && first !== undefined) {
    await processor.usePaymentMethod(customerId, first);
  }
  return processor.subscribe({ customerId, userId, idempotencyKey: `subscribe:${userId}:${subscriptions + 1}` });
};

const takeNextKey = async ({ db }: BillingContext, userId: string): Promise<void> => {
  await db
    .updateTable('billing_accounts')
    .set((row) => ({ subscriptions: row('subscriptions', '+', 1) }))
    .where('user_id', '=', userId)
    .execute();
};
