// Invoices: drafts at the end of a period, finalization, and invoice items. Payment is in billing-cycle.ts.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import type { Invoice, InvoiceItem, InvoiceLine, Subscription } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { badRequest, listPage, metadata, none, noSuch, paging, type Route, route, text, whole } from './api-route.ts';
import { findCustomer } from './customers.ts';
import { type MonthLine, monthEndLines } from './prices.ts';
import { findSubscription, nextMonthStart, periodOf } from './subscriptions.ts';

const subscriptionIdOf = ({ parent }: Invoice): string => parent.subscription_details.subscription;

export const findInvoice = (sandbox: Sandbox, id: string): Invoice => {
  const invoice = sandbox.store.get('invoices', id);
  if (invoice === undefined) throw noSuch('invoice', id);
  return invoice;
};

/** Creates the draft invoice of the period that ends now, including waiting items. */
export const draftInvoice = (sandbox: Sandbox, subscription: Subscription): Invoice => {
  const { start, end } = periodOf(subscription);
  const id = randomId('in');
  for (const item of sandbox.store.all('invoice_items')) {
    const isOwn = item.parent.subscription_details.subscription === subscription.id;
    if (isOwn && item.invoice === null) sandbox.store.put('invoice_items', { ...item, invoice: id });
  }
  const empty: Invoice = {
    id,
    object: 'invoice',
    livemode: false,
    created: sandbox.now(),
    customer: subscription.customer,
    customer_email: sandbox.store.get('customers', subscription.customer)?.email ?? null,
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
  return sandbox.store.put('invoices', withLines(sandbox, empty, !subscription.cancel_at_period_end));
};

/** Finalizes a draft invoice with all usage reported so far. */
export const finalizeInvoice = (sandbox: Sandbox, draft: Invoice): Invoice => {
  const goesOn = findSubscription(sandbox, draft.parent.subscription_details.subscription).status !== 'canceled';
  const final = sandbox.store.put('invoices', {
    ...withLines(sandbox, draft, goesOn),
    status: 'open',
    number: nextNumber(sandbox),
    status_transitions: { finalized_at: sandbox.now(), paid_at: null },
  });
  sandbox.emit('invoice.finalized', final);
  return final;
};

const nextNumber = ({ store }: Sandbox): string => {
  const numbered = store.all('invoices').filter(({ number }) => number !== null);
  return `SIM-${String(numbered.length + 1).padStart(6, '0')}`;
};

const withLines = (sandbox: Sandbox, invoice: Invoice, goesOn: boolean): Invoice => {
  const subscription = findSubscription(sandbox, invoice.parent.subscription_details.subscription);
  const lines = monthEndLines({
    prices: subscription.items.data.map(({ price }) => price),
    bytes: bytesOf(sandbox, invoice),
    goesOn,
    waiting: sandbox.store.all('invoice_items').filter((item) => item.invoice === invoice.id),
  });
  const total = lines.reduce((sum, { cents }) => sum + cents, 0);
  const data = lines.map((line, index) => lineItem(invoice, line, index));
  return { ...invoice, ...amounts(total), lines: { ...invoice.lines, data } };
};

const bytesOf = ({ store }: Sandbox, { customer, period_start, period_end }: Invoice): number =>
  store
    .all('meter_events')
    .filter((event) => event.customer === customer)
    .filter(({ billed_at }) => billed_at >= period_start && billed_at < period_end)
    .reduce((sum, { value }) => sum + value, 0);

const amounts = (total: number) => ({ subtotal: total, total, amount_due: total, amount_remaining: total });

const lineItem = (invoice: Invoice, line: MonthLine, index: number): InvoiceLine => {
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

const invoiceList = z.strictObject({
  ...paging,
  customer: text().optional(),
  subscription: text().optional(),
  status: z.enum(['draft', 'open', 'paid']).optional(),
});

/** Adds the page's URL at every call instead of storing it, because the address may change after a restart. */
const withPage = (invoice: Invoice, baseUrl: string): Invoice =>
  invoice.status === 'draft' ? invoice : { ...invoice, hosted_invoice_url: `${baseUrl}/invoice/${invoice.id}` };

export const invoiceRoutes = (baseUrl: () => string): readonly Route[] => [
  route('GET', '/v1/invoices', invoiceList, ({ store }, { customer, subscription, status, ...page }) => {
    const found = store
      .all('invoices')
      .filter((each) => customer === undefined || each.customer === customer)
      .filter((each) => subscription === undefined || subscription === subscriptionIdOf(each))
      .filter((each) => status === undefined || each.status === status);
    return listPage(
      '/v1/invoices',
      found.map((each) => withPage(each, baseUrl())),
      page,
    );
  }),
];

// Invoice items that wait for a subscription's next invoice, or are added to a draft.

const newItem = z.strictObject({
  customer: text(),
  // Target of the new invoice item: exactly one of `subscription` and `invoice`.
  subscription: text().optional(),
  invoice: text().optional(),
  amount: whole(0, 99_999_999),
  currency: z.literal('usd'),
  description: text(),
  metadata: metadata(),
});

const createItem = (sandbox: Sandbox, params: z.output<typeof newItem>): InvoiceItem => {
  const { subscription: _subscription, invoice: _invoice, ...fields } = params;
  findCustomer(sandbox, params.customer);
  const { subscription, invoice } = targetOf(sandbox, params);
  return sandbox.store.put('invoice_items', {
    id: randomId('ii'),
    object: 'invoiceitem',
    livemode: false,
    date: sandbox.now(),
    ...fields,
    parent: { type: 'subscription_details', subscription_details: { subscription } },
    invoice,
  });
};

type ItemTarget = Pick<InvoiceItem, 'invoice'> & { readonly subscription: string };

const targetOf = (sandbox: Sandbox, { customer, subscription, invoice }: z.output<typeof newItem>): ItemTarget => {
  if (subscription === undefined) return onDraft(sandbox, customer, invoice ?? '');
  if (invoice === undefined) return onNext(sandbox, customer, subscription);
  throw badRequest('You may only specify one of these parameters: subscription, invoice.', { param: 'invoice' });
};

/** Adds the item to the subscription's next invoice. */
const onNext = (sandbox: Sandbox, customer: string, subscription: string): ItemTarget => {
  const of = findSubscription(sandbox, subscription);
  if (of.customer !== customer || of.status === 'canceled') {
    throw badRequest('The subscription is not a living one of this customer.', { param: 'subscription' });
  }
  return { subscription: of.id, invoice: null };
};

const onDraft = (sandbox: Sandbox, customer: string, invoice: string): ItemTarget => {
  const of = findInvoice(sandbox, invoice);
  if (of.customer !== customer || of.status !== 'draft') {
    throw badRequest('The invoice is not a draft of this customer.', { param: 'invoice' });
  }
  return { subscription: of.parent.subscription_details.subscription, invoice: of.id };
};

const itemOf = (sandbox: Sandbox, id: string): InvoiceItem => {
  const item = sandbox.store.get('invoice_items', id);
  if (item === undefined) throw noSuch('invoiceitem', id);
  return item;
};

const removeItem = (sandbox: Sandbox, _params: object, id: string): object => {
  if (itemOf(sandbox, id).invoice !== null) throw badRequest('The item is on an invoice and cannot be deleted.');
  sandbox.store.remove('invoice_items', id);
  return { id, object: 'invoiceitem', deleted: true };
};

const itemList = z.strictObject({ ...paging, customer: text().optional() });

export const invoiceItemRoutes: readonly Route[] = [
  route('POST', '/v1/invoiceitems', newItem, createItem),
  route('GET', '/v1/invoiceitems', itemList, ({ store }, { customer, ...page }) => {
    const found = store.all('invoice_items').filter((each) => customer === undefined || each.customer === customer);
    return listPage('/v1/invoiceitems', found, page);
  }),
  route('GET', '/v1/invoiceitems/{id}', none, (sandbox, _params, id) => itemOf(sandbox, id)),
  route('DELETE', '/v1/invoiceitems/{id}', none, removeItem),
];
