// Items that wait for the next invoice of a subscription, or are put on a draft.
import { randomId } from '@tunnel/runtime';
import * as z from 'zod';
import { listPage } from '../list-page.ts';
import { metadata, none, paging, text, whole } from '../params.ts';
import { type Route, route } from '../route.ts';
import { badRequest, noSuch } from '../sim-error.ts';
import type { SimInvoiceItem } from '../sim-objects.ts';
import type { SimWorld } from '../sim-world.ts';
import { customerOf } from './customers.ts';
import { invoiceOf } from './invoices.ts';
import { subscriptionOf } from './subscriptions.ts';

const creating = z.strictObject({
  customer: text(),
  // One of the two.
  subscription: text().optional(),
  invoice: text().optional(),
  amount: whole(0, 99_999_999),
  currency: z.literal('usd'),
  description: text(),
  metadata: metadata(),
});

const create = (world: SimWorld, params: z.output<typeof creating>): SimInvoiceItem => {
  const { subscription: _subscription, invoice: _invoice, ...fields } = params;
  customerOf(world, params.customer);
  const { subscription, invoice } = placeOf(world, params);
  return world.state.put('invoice_items', {
    id: randomId('ii'),
    object: 'invoiceitem',
    livemode: false,
    date: world.now(),
    ...fields,
    parent: { type: 'subscription_details', subscription_details: { subscription } },
    invoice,
  });
};

type Place = Pick<SimInvoiceItem, 'invoice'> & { readonly subscription: string };

const placeOf = (world: SimWorld, { customer, subscription, invoice }: z.output<typeof creating>): Place => {
  if (subscription === undefined) return onDraft(world, customer, invoice ?? '');
  if (invoice === undefined) return onNext(world, customer, subscription);
  throw badRequest('You may only specify one of these parameters: subscription, invoice.', { param: 'invoice' });
};

/** It waits for the next invoice. */
const onNext = (world: SimWorld, customer: string, subscription: string): Place => {
  const of = subscriptionOf(world, subscription);
  if (of.customer !== customer || of.status === 'canceled') {
    throw badRequest('The subscription is not a living one of this customer.', { param: 'subscription' });
  }
  return { subscription: of.id, invoice: null };
};

const onDraft = (world: SimWorld, customer: string, invoice: string): Place => {
  const of = invoiceOf(world, invoice);
  if (of.customer !== customer || of.status !== 'draft') {
    throw badRequest('The invoice is not a draft of this customer.', { param: 'invoice' });
  }
  return { subscription: of.parent.subscription_details.subscription, invoice: of.id };
};

const itemOf = (world: SimWorld, id: string): SimInvoiceItem => {
  const item = world.state.get('invoice_items', id);
  if (item === undefined) throw noSuch('invoiceitem', id);
  return item;
};

const remove = (world: SimWorld, _params: object, id: string): object => {
  if (itemOf(world, id).invoice !== null) throw badRequest('The item is on an invoice and cannot be deleted.');
  world.state.remove('invoice_items', id);
  return { id, object: 'invoiceitem', deleted: true };
};

const listing = z.strictObject({ ...paging, customer: text().optional() });

export const invoiceItemRoutes: readonly Route[] = [
  route('POST', '/v1/invoiceitems', creating, create),
  route('GET', '/v1/invoiceitems', listing, ({ state }, { customer, ...page }) => {
    const found = state.all('invoice_items').filter((each) => customer === undefined || each.customer === customer);
    return listPage('/v1/invoiceitems', found, page);
  }),
  route('GET', '/v1/invoiceitems/{id}', none, (world, _params, id) => itemOf(world, id)),
  route('DELETE', '/v1/invoiceitems/{id}', none, remove),
];
