// Opens a suspended account again. Those who were signed in sign in anew.
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { lockAccountOf } from './find-account.ts';

/** false: it was not suspended. */
export const restore = async (
  { db }: Pick<OperatorContext, 'db'>,
  actor: OperatorActor,
  email: string,
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountOf(trx, email);
    if (account.status === 'active') return { changed: false };
    await trx.updateTable('users').set({ status: 'active' }).where('id', '=', account.id).execute();
    await writeAudit(trx, { actor: actorName(actor), action: 'user.restored', userId: account.id });
    await announceChange(trx, { kind: 'account-changed', accountId: account.id });
    return { changed: true };
  });
