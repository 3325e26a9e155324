// Reads an account at the processor and writes what holds there. A webhook is a reason to do this and never the news itself: so
// any order and any number of them give the same state.
import { applyFacts } from './apply-facts.ts';
import { findAccount } from './billing-account.ts';
import type { BillingContext } from './billing-context.ts';

export interface SyncOptions {
  /** Not when somebody read it since then. */
  readonly notReadSince?: number;
  /** A customer that is gone is taken for gone; else it is only told of. */
  readonly mayForget?: boolean;
}

export const syncAccount = async (
  context: BillingContext,
  userId: string,
  { notReadSince = Number.POSITIVE_INFINITY, mayForget = true }: SyncOptions = {},
): Promise<void> =>
  context.locks.hold(userId, async (trx) => {
    const account = await findAccount(trx, userId);
    if (account === undefined || account.customer_id === null) return;
    if (account.synced_at !== null && account.synced_at.getTime() > notReadSince) return;
    const facts = await context.processor.readCustomer(account.customer_id);
    if (facts !== null || mayForget) {
      await applyFacts(context, trx, { account, facts, actor: 'system' });
      return;
    }
    // The key of another account of the processor would end every subscription here: somebody has to look.
    context.logger.error(
      { user_id: userId, customer: account.customer_id },
      'the payment processor has no such customer',
    );
    const now = new Date(context.clock.now());
    await trx.updateTable('billing_accounts').set({ synced_at: now }).where('user_id', '=', userId).execute();
  });
