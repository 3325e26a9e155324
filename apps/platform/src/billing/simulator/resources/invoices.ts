// Invoices: a draft at the end of a period, then its final amounts. What is paid and what is not is in payments.ts.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { type MonthLine, monthEndLines, nextMonthStart } from '../month-end.ts';
import { paging, text } from '../params.ts';
import { type Route, route } from '../route.ts';
import { noSuch } from '../sim-error.ts';
import type { SimInvoice, SimInvoiceLine, SimSubscription } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { periodOf, subscriptionOf } from './subscriptions.ts';

const subscriptionIdOf = ({ parent }: SimInvoice): string => parent.subscription_details.subscription;

export const invoiceOf = (world: SimWorld, id: string): SimInvoice => {
  const invoice = world.state.get('invoices', id);
  if (invoice === undefined) throw noSuch('invoice', id);
  return invoice;
};

/** Of the period that ends now. Items that wait go on it. */
export const draftInvoice = (world: SimWorld, subscription: SimSubscription): SimInvoice => {
  const { start, end } = periodOf(subscription);
  const id = randomId('in');
  for (const item of world.state.all('invoice_items')) {
    const isOwn = item.parent.subscription_details.subscription === subscription.id;
    if (isOwn && item.invoice === null) world.state.put('invoice_items', { ...item, invoice: id });
  }
  const empty: SimInvoice = {
    id,
    object: 'invoice',
    livemode: false,
    created: world.now(),
    customer: subscription.customer,
    customer_email: world.state.get('customers', subscription.customer)?.email ?? null,
    currency: subscription.currency,
    status: 'draft',
    billing_reason: 'subscription_cycle',
    collection_method: 'charge_automatically',
    number: null,
    period_start: start,
    period_end: end,
    lines: { object: 'list', url: `/v1/invoices/${id}/lines`, has_more: false, data: [] },
    ...amounts(0),
    amount_paid: 0,
    attempt_count: 0,
    attempted: false,
    next_payment_attempt: null,
    parent: { type: 'subscription_details', subscription_details: { subscription: subscription.id } },
    status_transitions: { finalized_at: null, paid_at: null },
    hosted_invoice_url: null,
    invoice_pdf: null,
  };
  return world.state.put('invoices', withLines(world, empty, !subscription.cancel_at_period_end));
};

/** With all usage that was reported until now. */
export const finalizeInvoice = (world: SimWorld, draft: SimInvoice): SimInvoice => {
  const goesOn = subscriptionOf(world, draft.parent.subscription_details.subscription).status !== 'canceled';
  const final = world.state.put('invoices', {
    ...withLines(world, draft, goesOn),
    status: 'open',
    number: nextNumber(world),
    status_transitions: { finalized_at: world.now(), paid_at: null },
  });
  world.emit('invoice.finalized', final);
  return final;
};

const nextNumber = ({ state }: SimWorld): string => {
  const numbered = state.all('invoices').filter(({ number }) => number !== null);
  return `SIM-${String(numbered.length + 1).padStart(6, '0')}`;
};

const withLines = (world: SimWorld, invoice: SimInvoice, goesOn: boolean): SimInvoice => {
  const subscription = subscriptionOf(world, invoice.parent.subscription_details.subscription);
  const lines = monthEndLines({
    prices: subscription.items.data.map(({ price }) => price),
    bytes: bytesOf(world, invoice),
    goesOn,
    waiting: world.state.all('invoice_items').filter((item) => item.invoice === invoice.id),
  });
  const total = lines.reduce((sum, { cents }) => sum + cents, 0);
  const data = lines.map((line, index) => lineItem(invoice, line, index));
  return { ...invoice, ...amounts(total), lines: { ...invoice.lines, data } };
};

const bytesOf = ({ state }: SimWorld, { customer, period_start, period_end }: SimInvoice): number =>
  state
    .all('meter_events')
    .filter((event) => event.customer === customer)
    .filter(({ billed_at }) => billed_at >= period_start && billed_at < period_end)
    .reduce((sum, { value }) => sum + value, 0);

const amounts = (total: number) => ({ subtotal: total, total, amount_due: total, amount_remaining: total });

const lineItem = (invoice: SimInvoice, line: MonthLine, index: number): SimInvoiceLine => {
  const ended = { start: invoice.period_start, end: invoice.period_end };
  const toCome = { start: invoice.period_end, end: nextMonthStart(invoice.period_end) };
  const { price } = line;
  return {
    id: `il_${invoice.id.slice(3)}_${index}`,
    object: 'line_item',
    amount: line.cents,
    currency: invoice.currency,
    description: line.description,
    period: line.kind === 'fixed' ? toCome : ended,
    quantity: line.quantity,
    pricing:
      price === null ? null : { type: 'price_details', price_details: { price: price.id, product: price.product } },
    subscription: invoice.parent.subscription_details.subscription,
  };
};

const listing = z.strictObject({
  ...paging,
  customer: text().optional(),
  subscription: text().optional(),
  status: z.enum(['draft', 'open', 'paid']).optional(),
});

export const invoiceRoutes: readonly Route[] = [
  route('GET', '/v1/invoices', listing, ({ state }, { customer, subscription, status, ...page }) => {
    const found = state
      .all('invoices')
      .filter((each) => customer === undefined || each.customer === customer)
      .filter((each) => subscription === undefined || subscription === subscriptionIdOf(each))
      .filter((each) => status === undefined || each.status === status);
    return listPage('/v1/invoices', found, page);
  }),
];
