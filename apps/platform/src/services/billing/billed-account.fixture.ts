// Accounts with billed usage, inserted as rows without a payment processor. For tests only.
import { monthOf } from '../../billing/rules/rating.rules.ts';
import type { Db } from '../../db/database.ts';
import { type Account, addAccount, NOON } from '../edges/link.fixture.ts';

export interface BilledOptions {
  readonly meteredFrom?: number;
  readonly capCents?: number | null;
  readonly pastDueSince?: number | null;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Adds an account with a subscription. Metered for the last month by default. */
export const addBilledAccount = async (
  db: Db,
  { meteredFrom = NOON - 31 * DAY_MS, capCents = null, pastDueSince = null }: BilledOptions = {},
): Promise<Account> => {
  const account = await addAccount(db, 'payg');
  await db
    .insertInto('billing_accounts')
    .values({
      user_id: account.accountId,
      subscription_id: `sub_${account.accountId}`,
      subscription_status: pastDueSince === null ? 'active' : 'past_due',
      metered_from: new Date(meteredFrom),
      past_due_since: pastDueSince === null ? null : new Date(pastDueSince),
      spend_cap_cents: capCents,
    })
    .execute();
  return account;
};

/** Sets the metered usage of the month. One cent is 10^8 bytes. */
export const setMetered = async (db: Db, accountId: string, bytes: number, at = NOON): Promise<void> => {
  await db
    .insertInto('metered_usage')
    .values({ user_id: accountId, month: monthOf(at), bytes })
    .onConflict((conflict) => conflict.columns(['user_id', 'month']).doUpdateSet({ bytes }))
    .execute();
};

export const meteredOf = (db: Db, accountId: string) =>
  db.selectFrom('metered_usage').select(['month', 'bytes']).where('user_id', '=', accountId).orderBy('month').execute();
