// Subscriptions at the payment processor, from creation to the minimum of the last month.
import type { Stripe } from 'stripe';
import { CURRENCY, type Prices } from './prices.ts';
import type { FinalMinimumOrder, SubscribeOrder, SubscriptionFacts } from './processor.ts';
import { createOnce, isMissing } from './processor-client.ts';

const PAGE = 100;

/**
 * Starts a subscription. Its periods end with the calendar month (UTC), and the start is free of charge. A live subscription is returned
 * as is, so that a retry after a lost response never creates a second subscription.
 */
export const subscribe = async (stripe: Stripe, prices: Prices, order: SubscribeOrder): Promise<SubscriptionFacts> => {
  const present = await newestSubscription(stripe, order.customerId);
  if (present !== null && present.status !== 'canceled') return present;
  const items = (await prices.ids(stripe)).map((price) => ({ price }));
  const made = await stripe.subscriptions.create(
    {
      customer: order.customerId,
      items,
      billing_cycle_anchor_config: { day_of_month: 1, hour: 0, minute: 0, second: 0 },
      proration_behavior: 'none',
      off_session: true,
      metadata: { user_id: order.userId },
    },
    { idempotencyKey: order.idempotencyKey },
  );
  return factsOf(made);
};

/**
 * Cancels the scheduled end of a subscription. The processor's portal sets the end as `cancel_at_period_end` or as `cancel_at`, and a
 * call can change only one of the fields.
 */
export const keepSubscription = async (stripe: Stripe, subscriptionId: string): Promise<SubscriptionFacts> => {
  const present = await stripe.subscriptions.retrieve(subscriptionId);
  if (present.cancel_at_period_end) {
    return factsOf(await stripe.subscriptions.update(subscriptionId, { cancel_at_period_end: false }));
  }
  if (present.cancel_at === null || present.status === 'canceled') return factsOf(present);
  return factsOf(await stripe.subscriptions.update(subscriptionId, { cancel_at: '' }));
};

export const endSubscriptions = async (stripe: Stripe, customerId: string): Promise<void> => {
  const { data } = await stripe.subscriptions.list({ customer: customerId, status: 'all', limit: PAGE });
  for (const { id, status } of data) {
    if (statusOf(status) === 'canceled') continue;
    try {
      await stripe.subscriptions.cancel(id, { invoice_now: true, prorate: false });
    } catch (error) {
      // The subscription was ended by another party a moment ago.
      if (!isMissing(error)) throw error;
    }
  }
};

/** Returns the newest live subscription, or else the newest ended subscription. The processor lists subscriptions newest first. */
export const newestSubscription = async (stripe: Stripe, customerId: string): Promise<SubscriptionFacts | null> => {
  const { data } = await stripe.subscriptions.list({ customer: customerId, status: 'all', limit: PAGE });
  const all = data.map(factsOf);
  return all.find(({ status }) => status !== 'canceled') ?? all[0] ?? null;
};

const factsOf = (subscription: Stripe.Subscription): SubscriptionFacts => {
  const ends = subscription.items.data.map((item) => item.current_period_end);
  return {
    id: subscription.id,
    status: statusOf(subscription.status),
    cancelsAtPeriodEnd: subscription.cancel_at_period_end || subscription.cancel_at !== null,
    periodEnd: ends.length === 0 ? null : Math.max(...ends) * 1000,
    startedAt: subscription.start_date * 1000,
  };
};

/** Maps the processor's finer status values to three: all kinds of unpaid are past due. */
const statusOf = (status: Stripe.Subscription.Status): SubscriptionFacts['status'] => {
  if (status === 'active' || status === 'trialing') return 'active';
  return status === 'canceled' || status === 'incomplete_expired' ? 'canceled' : 'past_due';
};

const KIND = 'final-minimum';

/**
 * Adds or removes the final minimum. The processor charges the fixed price at the end of a month for the coming month; for the customer,
 * the charge stands for the month that ended. An ending subscription has no coming month, so the minimum is added to the last invoice as
 * a separate item.
 */
export const setFinalMinimum = async (
  stripe: Stripe,
  minimumCents: number,
  order: FinalMinimumOrder,
): Promise<void> => {
  if (minimumCents === 0) return;
  const key = keyOf(order);
  const { data } = await stripe.invoiceItems.list({ customer: order.customerId, limit: PAGE });
  const present = data.filter(({ metadata }) => metadata?.['kind'] === KIND && metadata['key'] === key);
  if (order.wanted) {
    if (present.length === 0) await addItem(stripe, minimumCents, order, key);
    return;
  }
  // An item already on an invoice belongs to a month that has ended, and stays.
  for (const item of present.filter(({ invoice }) => invoice === null)) await removeItem(stripe, item.id);
};

const keyOf = ({ subscriptionId, periodEnd }: FinalMinimumOrder): string =>
  `${KIND}:${subscriptionId}:${Math.floor(periodEnd / 1000)}`;

const addItem = async (stripe: Stripe, cents: number, order: FinalMinimumOrder, key: string): Promise<void> => {
  const parent = await parentOf(stripe, order);
  if (parent === null) return;
  const params = {
    ...parent,
    customer: order.customerId,
    amount: cents,
    currency: CURRENCY,
    description: 'Monthly minimum for the last month (credited toward usage)',
    metadata: { kind: KIND, key },
  };
  await createOnce(
    key,
    (idempotencyKey) => stripe.invoiceItems.create(params, { idempotencyKey }),
    ({ id }) => isPresent(stripe, id),
  );
};

/**
 * Returns the object to which the item is added. The last invoice of an ended subscription accepts items until it is final; returns null
 * afterwards.
 */
const parentOf = async (
  stripe: Stripe,
  { customerId: customer, subscriptionId: subscription, hasEnded }: FinalMinimumOrder,
): Promise<{ readonly subscription: string } | { readonly invoice: string } | null> => {
  if (!hasEnded) return { subscription };
  const { data } = await stripe.invoices.list({ customer, subscription, status: 'draft', limit: 1 });
  return data[0] === undefined ? null : { invoice: data[0].id };
};

const isPresent = async (stripe: Stripe, id: string): Promise<boolean> => {
  try {
    const item: { readonly deleted?: unknown } = await stripe.invoiceItems.retrieve(id);
    return item.deleted !== true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
};

const removeItem = async (stripe: Stripe, id: string): Promise<void> => {
  try {
    await stripe.invoiceItems.del(id);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
};
