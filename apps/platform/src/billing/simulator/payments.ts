// Paying an invoice: by the customer's default card, and what follows when it fails.
import { invoiceOf } from './resources/invoices.ts';
import { changeSubscription, subscriptionOf } from './resources/subscriptions.ts';
import { badRequest } from './sim-error.ts';
import type { SimInvoice } from './sim-objects.ts';
import type { SimWorld } from './sim-world.ts';

const RETRY_SECS = 3 * 24 * 60 * 60;
/** After so many the invoice stays open, and is tried only when somebody asks for it. */
const TRIES = 4;

export const payInvoice = (world: SimWorld, id: string): SimInvoice => {
  const invoice = invoiceOf(world, id);
  if (invoice.status !== 'open') throw badRequest(`The invoice is ${invoice.status}.`);
  const paid = invoice.total === 0 || hasGoodCard(world, invoice.customer);
  return paid ? settle(world, invoice) : fail(world, invoice);
};

const hasGoodCard = ({ state }: SimWorld, customerId: string): boolean => {
  const methodId = state.get('customers', customerId)?.invoice_settings.default_payment_method ?? '';
  return state.get('payment_methods', methodId)?.metadata.simulated === 'good';
};

const settle = (world: SimWorld, invoice: SimInvoice): SimInvoice => {
  const paid = world.state.put('invoices', {
    ...invoice,
    status: 'paid',
    amount_paid: invoice.total,
    amount_remaining: 0,
    attempt_count: invoice.attempt_count + 1,
    attempted: true,
    next_payment_attempt: null,
    status_transitions: { ...invoice.status_transitions, paid_at: world.now() },
  });
  world.emit('invoice.paid', paid);
  const isClear = !world.state.all('invoices').some((each) => each.status === 'open' && isOfSame(each, invoice));
  if (isClear) setStatus(world, invoice, 'active');
  return paid;
};

const fail = (world: SimWorld, invoice: SimInvoice): SimInvoice => {
  const tries = invoice.attempt_count + 1;
  const failed = world.state.put('invoices', {
    ...invoice,
    attempt_count: tries,
    attempted: true,
    next_payment_attempt: tries < TRIES ? world.now() + RETRY_SECS : null,
  });
  world.emit('invoice.payment_failed', failed);
  setStatus(world, invoice, 'past_due');
  return failed;
};

const isOfSame = (one: SimInvoice, other: SimInvoice): boolean =>
  one.parent.subscription_details.subscription === other.parent.subscription_details.subscription;

const setStatus = (world: SimWorld, invoice: SimInvoice, status: 'active' | 'past_due'): void => {
  const subscription = subscriptionOf(world, invoice.parent.subscription_details.subscription);
  if (subscription.status !== 'canceled') changeSubscription(world, subscription, { status });
};
