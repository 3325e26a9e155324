// Spend cap: maximum cost of a month's usage, set by the account's owner.
import type { SpendCap } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import { isPayg } from '../../billing/rules/rating.rules.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { announceChange } from '../shared/edge-changes.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { findAccount } from './billing-account.ts';

/** Sets or removes the account's spend cap. After a raise or a removal, new tunnels are accepted at once. */
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
    // Reset the mark of a closed account. If the account is above the new cap, the next run of the job closes the account's tunnels.
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
