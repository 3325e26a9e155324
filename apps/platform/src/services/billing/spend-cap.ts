// The bound of what a month's usage may cost: set by its owner, held against new tunnels.
import type { LinkRefusal, SpendCap } from '@tunnel/contract';
import { capState, isGraceOver, isPayg, monthOf, PAST_DUE_GRACE_MS, showDollars } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../audit.ts';
import { announceChange } from '../edge-changes.ts';
import { refusal } from '../link-answers.ts';
import type { ServiceContext, UserActor } from '../service-context.ts';
import { findAccount } from './billing-account.ts';

/** Sets or removes the bound of what a month's usage may cost. One that was raised or removed lets tunnels in at once. */
export const setSpendCap = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  actor: UserActor,
  { spend_cap_cents }: SpendCap,
): Promise<SpendCap> => {
  const { userId } = actor;
  return db.transaction().execute(async (trx) => {
    await refuseFreePlan(trx, userId);
    const from = (await findAccount(trx, userId))?.spend_cap_cents ?? null;
    if (from === spend_cap_cents) return { spend_cap_cents };
    // Never closed yet: an account over a new cap is closed by the next run of the job.
    const cap = { spend_cap_cents, cap_closed_at: null, updated_at: new Date(clock.now()) };
    await trx
      .insertInto('billing_accounts')
      .values({ user_id: userId, ...cap })
      .onConflict((conflict) => conflict.column('user_id').doUpdateSet(cap))
      .execute();
    const details = { from, to: spend_cap_cents };
    await writeAudit(trx, { actor: actorName(actor), action: 'billing.spend-cap-set', userId, details });
    await announceChange(trx, { kind: 'account-changed', accountId: userId });
    return { spend_cap_cents };
  });
};

const refuseFreePlan = async (trx: Transaction<Schema>, userId: string): Promise<void> => {
  const { plan, priceCentsPerGb } = await trx
    .selectFrom('users')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['users.plan', 'plans.price_cents_per_gb as priceCentsPerGb'])
    .where('users.id', '=', userId)
    .forNoKeyUpdate('users')
    .executeTakeFirstOrThrow();
  if (!isPayg({ priceCentsPerGb })) throw new Fault('BILLING_CAP_NOT_PAYG', { plan });
};

export interface BillingRefusal {
  /** Against every tunnel, also one that comes back. */
  readonly ofAll: LinkRefusal | null;
  /** Against new ones alone: those that live may stay and come back. */
  readonly ofNew: LinkRefusal | null;
}

const NONE: BillingRefusal = { ofAll: null, ofNew: null };
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * What an account's bill has against its tunnels: the spend cap is reached, or a payment failed and the days of grace are
 * over.
 */
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
