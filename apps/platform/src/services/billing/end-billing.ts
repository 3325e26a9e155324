// Ends what an account has at the payment processor, for good: its subscription, with one last invoice of what was used. Reading
// first makes it safe to do again: one that has ended stays as it is.
import { Fault } from '@tunnel/errors';
import { type BillingContext, findAccount } from './billing-account.ts';
import { applyFacts } from './sync-account.ts';

export const endBilling = async (context: BillingContext, userId: string): Promise<void> => {
  if ((await findAccount(context.db, userId))?.customer_id == null) return;
  await reportRest(context, userId);
  await context.locks.hold(userId, async (trx) => {
    const account = await findAccount(trx, userId);
    if (account === undefined || account.customer_id === null) return;
    const { customer_id: customerId } = account;
    const { processor } = context;
    const facts = await processor.readCustomer(customerId);
    // Unknown there: nothing is charged to it.
    if (facts === null) return;
    const { subscription } = facts;
    if (subscription !== null && subscription.status !== 'canceled') {
      const { id: subscriptionId, periodEnd } = subscription;
      // The month that has begun costs its minimum, as when it is set to end.
      if (periodEnd !== null) {
        await processor.setFinalMinimum({ customerId, subscriptionId, periodEnd, wanted: true, hasEnded: false });
      }
      await processor.endSubscriptions(customerId);
    }
    const ended = await processor.readCustomer(customerId);
    if (ended !== null) await applyFacts(context, trx, { account, facts: ended, actor: 'system' });
  });
};

/** What the processor refuses to take must not keep the subscription alive: metering has told of it. */
const reportRest = async ({ metering }: BillingContext, userId: string): Promise<void> => {
  try {
    await metering.flush(userId);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'BILLING_PROCESSOR_REFUSED') throw error;
  }
};
