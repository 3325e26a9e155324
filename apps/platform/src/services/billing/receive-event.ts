// Takes a webhook of the processor: proven by its signature, noted before anything is done, done once it is done. Any failure is
// the sender's reason to send it again.
import type { ProcessorEvent } from '../../billing/processor/processor.ts';
import type { BillingContext } from './billing-account.ts';
import { syncAccount } from './sync-account.ts';

/** What the state of an account may hang on. All others are noted and answered. */
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

/** It was read after this event then: nothing in it can be news. */
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
  // A draft becomes final after our answer: what was used has to be on it.
  if (type === 'invoice.created') await context.metering.flush(account.user_id);
  await syncAccount(context, account.user_id);
};
