// Gives an account another plan. Tunnels that are open stay, also those over the new limit.
import { Fault } from '@tunnel/errors';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { lockAccountOf } from './find-account.ts';

/** false: it had that plan already. */
export const setPlan = async (
  { db }: Pick<OperatorContext, 'db'>,
  actor: OperatorActor,
  { email, plan }: { readonly email: string; readonly plan: string },
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountOf(trx, email);
    const plans = await trx.selectFrom('plans').select('name').orderBy('name').execute();
    const names = plans.map(({ name }) => name);
    if (!names.includes(plan)) throw new Fault('PLAN_UNKNOWN', { plan, plans: names.join(', ') });
    if (account.plan === plan) return { changed: false };
    await trx.updateTable('users').set({ plan }).where('id', '=', account.id).execute();
    const details = { from: account.plan, to: plan };
    await writeAudit(trx, { actor: actorName(actor), action: 'user.plan-set', userId: account.id, details });
    await announceChange(trx, { kind: 'account-changed', accountId: account.id });
    return { changed: true };
  });
