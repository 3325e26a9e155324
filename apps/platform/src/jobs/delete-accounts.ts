// Goes on with deletions of accounts until each has ended: also those whose process died, and those that waited for the processor.
import { LIMITS } from '../limits.ts';
import { claimDeletions, continueDeletion } from '../services/accounts/continue-deletion.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import type { Job } from './jobs.ts';

export const deleteAccounts = (billing: BillingContext): Job => ({
  name: 'delete accounts',
  everyMs: LIMITS.DELETIONS_EVERY_MS,
  run: async ({ db, clock }) => {
    for (;;) {
      const claimed = await claimDeletions(db, clock.now());
      await Promise.all(claimed.map((userId) => continueDeletion(billing, userId)));
      if (claimed.length < LIMITS.DELETIONS_AT_ONCE) return;
    }
  },
});
