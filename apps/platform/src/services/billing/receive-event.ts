// Handles a webhook of the payment processor: verifies the signature, records the event before acting, and marks the event as handled
// afterwards. After any error, the processor sends the webhook again.
import type { ProcessorEvent } from '../../billing/processor/processor.ts';
import type { BillingContext } from './billing-account.ts';
import { syncAccount } from './sync-account.ts';

/** Webhook types that can change the state of an account. Other events are recorded and acknowledged only. */
const REASONS_TO_LOOK: ReadonlySet<string> = new Set([
  'customer.deleted',
  'customer.updated',
  'customer.subscription.created',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'customer.subscription.updated',
  'invoice.created',
  'invoice.finalized',
  'invoice.marked_uncollectible',
  'invoice.paid',
  'invoice.payment_action_required',
  'invoice.payment_failed',
  'invoice.payment_succeeded',
  'invoice.voided',
  'payment_method.attached',
  'payment_method.detached',
  'payment_method.updated',
  'setup_intent.succeeded',
]);

export const receiveEvent = async (
  context: BillingContext,
  { body, signature }: { readonly body: Uint8Array; readonly signature: string },
): Promise<void> => {
  const event = await context.processor.readEvent(body, signature);
  if (await wasHandled(context, event)) return;
  await act(context, event);
  await context.db
    .updateTable('processor_events')
    .set({ handled_at: new Date(context.clock.now()) })
    .where('id', '=', event.id)
    .where('handled_at', 'is', null)
    .execute();
};

/**
 * Records an event. Returns true if the event was handled before; the account was synced after the event then, so the event contains
 * nothing new.
 */
const wasHandled = async ({ db, clock }: BillingContext, event: ProcessorEvent): Promise<boolean> => {
  await db
    .insertInto('processor_events')
    .values({
      id: event.id,
      type: event.type,
      customer_id: event.customerId,
      received_at: new Date(clock.now()),
      handled_at: null,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  const { handled_at } = await db
    .selectFrom('processor_events')
    .select('handled_at')
    .where('id', '=', event.id)
    .executeTakeFirstOrThrow();
  return handled_at !== null;
};

const act = async (context: BillingContext, { id, type, customerId }: ProcessorEvent): Promise<void> => {
  if (!REASONS_TO_LOOK.has(type) || customerId === null) return;
  const account = await context.db
    .selectFrom('billing_accounts')
    .select('user_id')
    .where('customer_id', '=', customerId)
    .executeTakeFirst();
  if (account === undefined) {
    context.logger.info({ event: id, type }, 'received an event of an unknown customer');
    return;
  }
  // The processor finalizes the draft invoice after this response, so the usage must be reported first.
  if (type === 'invoice.created') await context.metering.flush(account.user_id);
  await syncAccount(context, account.user_id);
};
