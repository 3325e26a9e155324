// Subscriptions with two prices, aligned to calendar months, without a charge at the start.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import type { Invoice, Price, Subscription, SubscriptionItem } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { badRequest, flag, listPage, metadata, none, noSuch, paging, type Route, route, text } from './api-route.ts';
import { findCustomer } from './customers.ts';

const newSubscription = z.strictObject({
  customer: text(),
  items: z
    .array(z.strictObject({ price: text() }))
    .min(1)
    .max(20),
  // Start of the subscription's billing periods. Only the first day of the month is simulated.
  billing_cycle_anchor_config: z.strictObject({
    day_of_month: z.literal('1'),
    hour: z.literal('0'),
    minute: z.literal('0'),
    second: z.literal('0'),
  }),
  proration_behavior: z.literal('none'),
  off_session: flag(),
  metadata: metadata(),
});

const createSubscription = (sandbox: Sandbox, params: z.output<typeof newSubscription>): Subscription => {
  findCustomer(sandbox, params.customer);
  const id = randomId('sub');
  const created = sandbox.now();
  const end = nextMonthStart(created);
  const items = params.items.map(({ price }, index) =>
    newItem(id, priceOf(sandbox, price, index), { created, current_period_start: created, current_period_end: end }),
  );
  const subscription = sandbox.store.put('subscriptions', {
    id,
    object: 'subscription',
    livemode: false,
    created,
    customer: params.customer,
    status: 'active',
    start_date: created,
    billing_cycle_anchor: end,
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    ended_at: null,
    currency: 'usd',
    collection_method: 'charge_automatically',
    default_payment_method: null,
    items: { object: 'list', url: `/v1/subscription_items?subscription=${id}`, has_more: false, data: items },
    latest_invoice: null,
    metadata: params.metadata,
  });
  sandbox.emit('customer.subscription.created', subscription);
  return subscription;
};

const priceOf = (sandbox: Sandbox, id: string, index: number): Price => {
  const price = sandbox.store.get('prices', id);
  if (price === undefined) throw noSuch('price', id, `items[${index}][price]`);
  return price;
};

type Times = Pick<SubscriptionItem, 'created' | 'current_period_start' | 'current_period_end'>;

const newItem = (subscription: string, price: Price, times: Times): SubscriptionItem => ({
  id: randomId('si'),
  object: 'subscription_item',
  livemode: false,
  subscription,
  price,
  ...(price.recurring.usage_type === 'licensed' ? { quantity: 1 as const } : {}),
  ...times,
});

export const findSubscription = (sandbox: Sandbox, id: string): Subscription => {
  const subscription = sandbox.store.get('subscriptions', id);
  if (subscription === undefined) throw noSuch('subscription', id);
  return subscription;
};

/** Returns the first of the next month in UTC. Times are in seconds. */
export const nextMonthStart = (at: number): number => {
  const date = new Date(at * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / 1000;
};

export const periodOf = ({ items }: Subscription): { start: number; end: number } => {
  const [item] = items.data;
  if (item === undefined) throw new Error('a subscription has items');
  return { start: item.current_period_start, end: item.current_period_end };
};

/** Returns the start of the customer's oldest unbilled period, or null. */
export const openSince = (sandbox: Sandbox, customer: string): number | null => {
  const own = sandbox.store.all('subscriptions').filter((each) => each.customer === customer);
  const living = own.filter(({ status }) => status !== 'canceled').map((each) => periodOf(each).start);
  return least([...living, ...draftsOf(sandbox, customer).map(({ period_start }) => period_start)]);
};

/** Returns the last second of the customer's period being billed, or null. */
export const lastOfDraft = (sandbox: Sandbox, customer: string): number | null =>
  least(draftsOf(sandbox, customer).map(({ period_end }) => period_end - 1));

const draftsOf = ({ store }: Sandbox, customer: string): Invoice[] =>
  store.all('invoices').filter((each) => each.customer === customer && each.status === 'draft');

const least = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.min(...times));

/** Changes a subscription, and emits an event if a field changed. */
export const changeSubscription = (
  sandbox: Sandbox,
  before: Subscription,
  changes: Partial<Subscription>,
): Subscription => {
  const keys = (Object.keys(changes) as (keyof Subscription)[]).filter((key) => changes[key] !== before[key]);
  if (keys.length === 0) return before;
  const after = sandbox.store.put('subscriptions', { ...before, ...changes });
  const previous = Object.fromEntries(keys.map((key) => [key, before[key]]));
  sandbox.emit(`customer.subscription.${after.status === 'canceled' ? 'deleted' : 'updated'}`, after, previous);
  return after;
};

/** Sets or revokes the cancellation of a subscription at the end of its period. */
export const setToEnd = (sandbox: Sandbox, id: string, ends: boolean): Subscription => {
  const before = findSubscription(sandbox, id);
  if (before.status === 'canceled') {
    throw badRequest('A canceled subscription can only update its cancellation_details and metadata.');
  }
  return changeSubscription(sandbox, before, {
    cancel_at_period_end: ends,
    cancel_at: ends ? periodOf(before).end : null,
    canceled_at: ends ? sandbox.now() : null,
  });
};

const subscriptionChange = z.union([
  z.strictObject({ cancel_at_period_end: flag() }),
  z.strictObject({ cancel_at: z.literal('') }).transform(() => ({ cancel_at_period_end: false })),
]);
const subscriptionList = z.strictObject({
  ...paging,
  customer: text().optional(),
  status: z.literal('all').optional(),
});

export const subscriptionRoutes: readonly Route[] = [
  route('POST', '/v1/subscriptions', newSubscription, createSubscription),
  route('GET', '/v1/subscriptions', subscriptionList, ({ store }, { customer, status, ...page }) => {
    const found = store
      .all('subscriptions')
      .filter((each) => customer === undefined || each.customer === customer)
      .filter((each) => status === 'all' || each.status !== 'canceled');
    return listPage('/v1/subscriptions', found, page);
  }),
  route('GET', '/v1/subscriptions/{id}', none, (sandbox, _params, id) => findSubscription(sandbox, id)),
  route('POST', '/v1/subscriptions/{id}', subscriptionChange, (sandbox, params, id) =>
    setToEnd(sandbox, id, params.cancel_at_period_end),
  ),
];
