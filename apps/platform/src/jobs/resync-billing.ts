// Reads accounts again that the processor was not asked about for an hour: a webhook may be lost. Those that are past due on a test
// clock are read every few seconds: nobody tells when somebody moves it.
import { Fault } from '@tunnel/errors';
import { DatabaseAway } from '../db/database-away.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import { syncAccount } from '../services/billing/sync-account.ts';
import type { Job } from './jobs.ts';

/** Accounts that were not read at the processor for so long are read again: a webhook may be lost. */
export const RESYNC_AFTER_MS = 60 * 60_000;
/** How often such accounts are looked for. */
const RESYNC_EVERY_MS = 60_000;
/** Accounts past due on a clock that is moved by hand, the simulator's, are read so often. */
const TEST_CLOCKS_EVERY_MS = 10_000;
/** Accounts that one run reads. */
const RESYNC_ROWS = 200;

/** Two processes may find the same accounts: whoever comes second sees that it was read, and does not ask again. */
export const resyncBilling = (billing: BillingContext): Job => ({
  name: 'resync billing',
  everyMs: RESYNC_EVERY_MS,
  run: async () => {
    const notReadSince = billing.clock.now() - RESYNC_AFTER_MS;
    for (const userId of await longUnread(billing, notReadSince)) {
      if (!(await tryToSync(billing, userId, notReadSince))) return;
    }
  },
});

export const followTestClocks = (billing: BillingContext): Job => ({
  name: 'follow test clocks',
  everyMs: TEST_CLOCKS_EVERY_MS,
  run: async () => {
    const notReadSince = billing.clock.now() - TEST_CLOCKS_EVERY_MS / 2;
    for (const userId of await longUnread(billing, notReadSince, { onTestClock: true })) {
      if (!(await tryToSync(billing, userId, notReadSince))) return;
    }
  },
});

const longUnread = async (
  { db }: BillingContext,
  notReadSince: number,
  { onTestClock = false }: { readonly onTestClock?: boolean } = {},
): Promise<string[]> => {
  const rows = await db
    .selectFrom('billing_accounts')
    .select('user_id')
    .where('customer_id', 'is not', null)
    // Of a deleted account the deletion has read the end.
    .where('user_id', 'not in', (users) => users.selectFrom('users').select('id').where('deleted_at', 'is not', null))
    .$if(onTestClock, (some) =>
      some.where('past_due_since', 'is not', null).where('processor_ahead_ms', 'is not', null),
    )
    .where((row) => row.or([row('synced_at', 'is', null), row('synced_at', '<=', new Date(notReadSince))]))
    .orderBy('synced_at', (order) => order.asc().nullsFirst())
    .limit(RESYNC_ROWS)
    .execute();
  return rows.map(({ user_id }) => user_id);
};

/** false: the others would fail as well. */
const tryToSync = async (billing: BillingContext, userId: string, notReadSince: number): Promise<boolean> => {
  try {
    await syncAccount(billing, userId, { notReadSince, mayForget: false });
    return true;
  } catch (error) {
    if (!(error instanceof Fault) || error instanceof DatabaseAway) throw error;
    billing.logger.warn({ user_id: userId, code: error.code }, 'cannot read an account from the payment processor');
    // Asked again in an hour, so that it does not stand in the way of the others.
    if (error.code === 'BILLING_PROCESSOR_REFUSED') await noteRead(billing, userId);
    return error.code !== 'BILLING_PROCESSOR_AWAY';
  }
};

const noteRead = async ({ db, clock }: BillingContext, userId: string): Promise<void> => {
  const synced_at = new Date(clock.now());
  await db.updateTable('billing_accounts').set({ synced_at }).where('user_id', '=', userId).execute();
};
