// Closes an account: its sessions and tunnels end everywhere, and nobody signs in.
import { Fault } from '@tunnel/errors';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { lockAccountOf } from './find-account.ts';

/** false: it was suspended already. */
export const suspend = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  email: string,
): Promise<{ changed: boolean }> =>
  db.transaction().execute(async (trx) => {
    const account = await lockAccountOf(trx, email);
    if (account.status === 'suspended') return { changed: false };
    await trx
      .updateTable('users')
      .set((row) => ({ status: 'suspended' as const, epoch: row('epoch', '+', 1) }))
      .where('id', '=', account.id)
      .execute();
    await trx
      .updateTable('refresh_families')
      .set({ revoked_at: new Date(clock.now()) })
      .where('user_id', '=', account.id)
      .where('revoked_at', 'is', null)
      .execute();
    await writeAudit(trx, { actor: actorName(actor), action: 'user.suspended', userId: account.id });
    const { code, message } = new Fault('ACCOUNT_SUSPENDED');
    await announceChange(trx, { kind: 'account-closed', accountId: account.id, code, message });
    return { changed: true };
  });
