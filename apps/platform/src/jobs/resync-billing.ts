// Reads billing accounts from the payment processor again after an hour without a read, in case a webhook was lost. Past due accounts on
// a test clock are read every few seconds, because nothing announces that a test clock was moved.
import { Fault } from '@tunnel/errors';
import { DatabaseAway } from '../db/database-away.ts';
import type { BillingContext } from '../services/billing/billing-account.ts';
import { syncAccount } from '../services/billing/sync-account.ts';
import type { Job } from './jobs.ts';

/** Time after which a billing account is read again from the payment processor, in case a webhook was lost. */
export const RESYNC_AFTER_MS = 60 * 60_000;
/** Interval between searches for accounts to read again. */
const RESYNC_EVERY_MS = 60_000;
/** Interval between reads of past due accounts on a test clock (the simulator's), which is moved by hand. */
const TEST_CLOCKS_EVERY_MS = 10_000;
/** Maximum number of accounts read from the payment processor in one run. */
const RESYNC_ROWS = 200;

/**
 * Reads accounts not read for an hour. Two processes may find the same account; the second process sees the first read and does not
 * repeat it.
 */
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
    // Deleted accounts are skipped: the deletion has already read the final state.
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

/** Reads an account. Returns false if the processor is unreachable, so that further reads would fail as well. */
const tryToSync = async (billing: BillingContext, userId: string, notReadSince: number): Promise<boolean> => {
  try {
    await syncAccount(billing, userId, { notReadSince, mayForget: false });
    return true;
  } catch (error) {
    if (!(error instanceof Fault) || error instanceof DatabaseAway) throw error;
    billing.logger.warn({ user_id: userId, code: error.code }, 'cannot read an account from the payment processor');
    // An account refused by the processor is marked as read and retried in an hour, so that the remaining accounts are not blocked.
    if (error.code === 'BILLING_PROCESSOR_REFUSED') await noteRead(billing, userId);
    return error.code !== 'BILLING_PROCESSOR_AWAY';
  }
};

const noteRead = async ({ db, clock }: BillingContext, userId: string): Promise<void> => {
  const synced_at = new Date(clock.now());
  await db.updateTable('billing_accounts').set({ synced_at }).where('user_id', '=', userId).execute();
};
