// Ends a subscription at once: what was reported, and the items that wait, go on one last invoice, which is final and paid then and
// there.
import * as z from 'zod';
import type { Subscription } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { flag, noSuch, type Route, route } from './api-route.ts';
import { payInvoice } from './billing-cycle.ts';
import { draftInvoice, finalizeInvoice } from './invoices.ts';
import { changeSubscription, subscriptionOf } from './subscriptions.ts';

// No other end is simulated.
const ending = z.strictObject({
  invoice_now: flag().refine((wanted) => wanted),
  prorate: flag().refine((wanted) => !wanted),
});

const endNow = (sandbox: Sandbox, id: string): Subscription => {
  const before = subscriptionOf(sandbox, id);
  // As the processor: one that has ended cannot end again.
  if (before.status === 'canceled') throw noSuch('subscription', id);
  const draft = draftInvoice(sandbox, before);
  sandbox.emit('invoice.created', draft);
  const now = sandbox.now();
  const ended = changeSubscription(sandbox, before, {
    ...{ status: 'canceled', canceled_at: now, ended_at: now, latest_invoice: draft.id },
    ...{ cancel_at_period_end: false, cancel_at: null },
  });
  payInvoice(sandbox, finalizeInvoice(sandbox, draft).id);
  return ended;
};

export const endSubscriptionRoutes: readonly Route[] = [
  route('DELETE', '/v1/subscriptions/{id}', ending, (sandbox, _params, id) => endNow(sandbox, id)),
];
