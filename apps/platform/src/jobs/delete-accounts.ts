// Continues account deletions until they have finished, for example after a process died during a deletion, or after a wait for the
// payment processor.
import { claimDeletions, continueDeletion, DELETIONS_AT_ONCE } from '../services/accounts/continue-deletion.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import type { Job } from './jobs.ts';

/** Interval between searches for unfinished account deletions. */
const DELETIONS_EVERY_MS = 1000;

export const deleteAccounts = (billing: BillingContext): Job => ({
  name: 'delete accounts',
  everyMs: DELETIONS_EVERY_MS,
  run: async ({ db, clock }) => {
    for (;;) {
      const claimed = await claimDeletions(db, clock.now());
      await Promise.all(claimed.map((userId) => continueDeletion(billing, userId)));
      if (claimed.length < DELETIONS_AT_ONCE) return;
    }
  },
});
