// What an account's bill has against its tunnels: the spend cap is reached, or a payment failed and the days of grace are over.

import type { LinkRefusal } from '@tunnel/contract';
import { capState, isGraceOver, monthOf, PAST_DUE_GRACE_MS, showDollars } from '@tunnel/core';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { refusal } from '../tunnels/verify-key.ts';

export interface BillingRefusal {
  /** Against every tunnel, also one that comes back. */
  readonly ofAll: LinkRefusal | null;
  /** Against new ones alone: those that live may stay and come back. */
  readonly ofNew: LinkRefusal | null;
}

const NONE: BillingRefusal = { ofAll: null, ofNew: null };
const DAY_MS = 24 * 60 * 60 * 1000;

export const refusalByBilling = async (
  trx: Transaction<Schema>,
  accountId: string,
  now: number,
): Promise<BillingRefusal> => {
  const row = await trx
    .selectFrom('billing_accounts as account')
    .innerJoin('users', 'users.id', 'account.user_id')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'account.user_id').on('usage.month', '=', monthOf(now)),
    )
    .select(['account.spend_cap_cents', 'account.past_due_since', 'plans.price_cents_per_gb', 'usage.bytes'])
    .where('account.user_id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) return NONE;
  const capCents = row.spend_cap_cents;
  const cap = capState({ bytes: row.bytes ?? 0, priceCentsPerGb: row.price_cents_per_gb, capCents });
  return {
    ofAll: cap.reached ? refusal('SPEND_CAP_REACHED', { cap: showDollars(capCents ?? 0) }) : null,
    ofNew: isGraceOver(row.past_due_since?.getTime() ?? null, now)
      ? refusal('ACCOUNT_PAST_DUE', { days: PAST_DUE_GRACE_MS / DAY_MS })
      : null,
  };
};
