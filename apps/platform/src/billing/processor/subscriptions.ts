// Subscriptions at the processor. They end with the calendar month (UTC), and nothing is charged at their start.
import type { Stripe } from 'stripe';
import type { Prices } from './prices.ts';
import type { SubscribeOrder, SubscriptionFacts } from './processor.ts';

const PAGE = 100;

/** One that lives is taken as it is, so that a call that was lost half-way never makes a second one. */
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

/** The processor's portal may set the end in either of two ways; only one of them can be named in a call. */
export const keepSubscription = async (stripe: Stripe, subscriptionId: string): Promise<SubscriptionFacts> => {
  const present = await stripe.subscriptions.retrieve(subscriptionId);
  if (present.cancel_at_period_end) {
    return factsOf(await stripe.subscriptions.update(subscriptionId, { cancel_at_period_end: false }));
  }
  if (present.cancel_at === null || present.status === 'canceled') return factsOf(present);
  return factsOf(await stripe.subscriptions.update(subscriptionId, { cancel_at: '' }));
};

/** The newest that lives, else the newest that has ended. They come newest first. */
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

/** What the processor tells apart more finely: unpaid is unpaid. */
const statusOf = (status: Stripe.Subscription.Status): SubscriptionFacts['status'] => {
  if (status === 'active' || status === 'trialing') return 'active';
  return status === 'canceled' || status === 'incomplete_expired' ? 'canceled' : 'past_due';
};
