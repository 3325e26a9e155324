// Goes on with deletions of accounts until each has ended: also those whose process died, and those that waited for the processor.
import { claimDeletions, continueDeletion, DELETIONS_AT_ONCE } from '../services/accounts/continue-deletion.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import type { Job } from './jobs.ts';

/** How often deletions of accounts are looked for. */
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
