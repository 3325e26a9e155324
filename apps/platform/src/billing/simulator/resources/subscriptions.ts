// Subscriptions: of two prices, to the end of the calendar month, nothing charged at the start.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { nextMonthStart } from '../month-end.ts';
import { flag, metadata, none, paging, text } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, noSuch } from '../sim-error.ts';
import type { SimInvoice, SimPrice, SimSubscription, SimSubscriptionItem } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';

const creating = z.strictObject({
  customer: text(),
  items: z
    .array(z.strictObject({ price: text() }))
    .min(1)
    .max(20),
  // No other anchor and no other start is simulated.
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

const create = (world: SimWorld, params: z.output<typeof creating>): SimSubscription => {
  customerOf(world, params.customer);
  const id = randomId('sub');
  const created = world.now();
  const end = nextMonthStart(created);
  const items = params.items.map(({ price }, index) =>
    newItem(id, priceOf(world, price, index), { created, current_period_start: created, current_period_end: end }),
  );
  const subscription = world.state.put('subscriptions', {
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
  world.emit('customer.subscription.created', subscription);
  return subscription;
};

const priceOf = (world: SimWorld, id: string, index: number): SimPrice => {
  const price = world.state.get('prices', id);
  if (price === undefined) throw noSuch('price', id, `items[${index}][price]`);
  return price;
};

type Times = Pick<SimSubscriptionItem, 'created' | 'current_period_start' | 'current_period_end'>;

const newItem = (subscription: string, price: SimPrice, times: Times): SimSubscriptionItem => ({
  id: randomId('si'),
  object: 'subscription_item',
  livemode: false,
  subscription,
  price,
  ...(price.recurring.usage_type === 'licensed' ? { quantity: 1 as const } : {}),
  ...times,
});

export const subscriptionOf = (world: SimWorld, id: string): SimSubscription => {
  const subscription = world.state.get('subscriptions', id);
  if (subscription === undefined) throw noSuch('subscription', id);
  return subscription;
};

export const periodOf = ({ items }: SimSubscription): { start: number; end: number } => {
  const [item] = items.data;
  if (item === undefined) throw new Error('a subscription has items');
  return { start: item.current_period_start, end: item.current_period_end };
};

/** The start of the oldest period of the customer that is not yet billed; null when there is none. */
export const openSince = (world: SimWorld, customer: string): number | null => {
  const own = world.state.all('subscriptions').filter((each) => each.customer === customer);
  const living = own.filter(({ status }) => status !== 'canceled').map((each) => periodOf(each).start);
  return least([...living, ...draftsOf(world, customer).map(({ period_start }) => period_start)]);
};

/** The last second of the period that is being billed; null when there is none. */
export const lastOfDraft = (world: SimWorld, customer: string): number | null =>
  least(draftsOf(world, customer).map(({ period_end }) => period_end - 1));

const draftsOf = ({ state }: SimWorld, customer: string): SimInvoice[] =>
  state.all('invoices').filter((each) => each.customer === customer && each.status === 'draft');

const least = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.min(...times));

/** Tells of it when something did change. */
export const changeSubscription = (
  world: SimWorld,
  before: SimSubscription,
  changes: Partial<SimSubscription>,
): SimSubscription => {
  const keys = (Object.keys(changes) as (keyof SimSubscription)[]).filter((key) => changes[key] !== before[key]);
  if (keys.length === 0) return before;
  const after = world.state.put('subscriptions', { ...before, ...changes });
  const previous = Object.fromEntries(keys.map((key) => [key, before[key]]));
  world.emit(`customer.subscription.${after.status === 'canceled' ? 'deleted' : 'updated'}`, after, previous);
  return after;
};

/** At the end of its period, or not after all. */
export const setToEnd = (world: SimWorld, id: string, ends: boolean): SimSubscription => {
  const before = subscriptionOf(world, id);
  if (before.status === 'canceled') {
    throw badRequest('A canceled subscription can only update its cancellation_details and metadata.');
  }
  return changeSubscription(world, before, {
    cancel_at_period_end: ends,
    cancel_at: ends ? periodOf(before).end : null,
    canceled_at: ends ? world.now() : null,
  });
};

const updating = z.union([
  z.strictObject({ cancel_at_period_end: flag() }),
  z.strictObject({ cancel_at: z.literal('') }).transform(() => ({ cancel_at_period_end: false })),
]);
const listing = z.strictObject({ ...paging, customer: text().optional(), status: z.literal('all').optional() });

export const subscriptionRoutes: readonly Route[] = [
  route('POST', '/v1/subscriptions', creating, create),
  route('GET', '/v1/subscriptions', listing, ({ state }, { customer, status, ...page }) => {
    const found = state
      .all('subscriptions')
      .filter((each) => customer === undefined || each.customer === customer)
      .filter((each) => status === 'all' || each.status !== 'canceled');
    return listPage('/v1/subscriptions', found, page);
  }),
  route('GET', '/v1/subscriptions/{id}', none, (world, _params, id) => subscriptionOf(world, id)),
  route('POST', '/v1/subscriptions/{id}', updating, (world, params, id) =>
    setToEnd(world, id, params.cancel_at_period_end),
  ),
];
