// Ends the account's subscription at the payment processor permanently, with a last invoice for the remaining usage. The subscription is
// read first, so the call can be repeated safely: an ended subscription is left unchanged.
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
    // The payment processor does not know the customer, so there is nothing to end and nothing is charged.
    if (facts === null) return;
    const { subscription } = facts;
    if (subscription !== null && subscription.status !== 'canceled') {
      const { id: subscriptionId, periodEnd } = subscription;
      // The current month is charged with the monthly minimum, as for a subscription canceled at the end of its period.
      if (periodEnd !== null) {
        await processor.setFinalMinimum({ customerId, subscriptionId, periodEnd, wanted: true, hasEnded: false });
      }
      await processor.endSubscriptions(customerId);
    }
    const ended = await processor.readCustomer(customerId);
    if (ended !== null) await applyFacts(context, trx, { account, facts: ended, actor: 'system' });
  });
};

/**
 * Reports the remaining usage to the payment processor. Usage rejected by the processor must not keep the subscription alive, so the
 * error is ignored; metering has logged the rejection.
 */
const reportRest = async ({ metering }: BillingContext, userId: string): Promise<void> => {
  try {
    await metering.flush(userId);
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'BILLING_PROCESSOR_REFUSED') throw error;
  }
};
