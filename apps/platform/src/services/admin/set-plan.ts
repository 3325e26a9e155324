// Gives an account another plan. Tunnels that are open stay, also those over the new limit.
import { isPayg } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { lockAccountOf } from './find-account.ts';

/** false: it had that plan already. */
export const setPlan = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  { email, plan }: { readonly email: string; readonly plan: string },
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountOf(trx, email);
    const { price } = await findPlan(trx, plan);
    if (account.plan === plan) return { changed: false };
    await trx.updateTable('users').set({ plan }).where('id', '=', account.id).execute();
    if (isPayg({ priceCentsPerGb: price })) await meterFrom(trx, account.id, new Date(clock.now()));
    const details = { from: account.plan, to: plan };
    await writeAudit(trx, { actor: actorName(actor), action: 'user.plan-set', userId: account.id, details });
    await announceChange(trx, { kind: 'account-changed', accountId: account.id });
    return { changed: true };
  });

const findPlan = async (trx: Transaction<Schema>, name: string): Promise<{ readonly price: number }> => {
  const plans = await trx.selectFrom('plans').select(['name', 'price_cents_per_gb as price']).orderBy('name').execute();
  const found = plans.find((plan) => plan.name === name);
  if (found !== undefined) return found;
  throw new Fault('PLAN_UNKNOWN', { plan: name, plans: plans.map((plan) => plan.name).join(', ') });
};

/** The estimate and the spend cap hold from now on, also for an account without a subscription. */
const meterFrom = async (trx: Transaction<Schema>, userId: string, now: Date): Promise<void> => {
  await trx
    .insertInto('billing_accounts')
    .values({ user_id: userId, metered_from: now })
    .onConflict((conflict) =>
      conflict
        .column('user_id')
        .doUpdateSet((held) => ({ metered_from: held.fn.coalesce('billing_accounts.metered_from', held.val(now)) })),
    )
    .execute();
};
