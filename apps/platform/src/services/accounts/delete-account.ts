// Deletes an account: in one transaction nobody can use it any more and its owner's data is gone from it. What takes longer, its
// log, its tunnels and its subscription, goes on from the row that this leaves: continue-deletion.ts.
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import { DatabaseAway } from '../../db/database-away.ts';
import type { Schema } from '../../db/schema.ts';
import type { AuthContext } from '../auth/auth-context.ts';
import { checkOwnPassword, lockShown } from '../auth/own-password.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { announceChange } from '../shared/edge-changes.ts';
import type { OperatorActor, OperatorContext, UserActor } from '../shared/service-context.ts';
import { eraseTraces } from './erase-traces.ts';

/** By its owner, who shows the password. Two at once: both are told that it is gone. */
export const deleteOwnAccount = async (
  context: Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users'>,
  actor: UserActor,
  password: string,
): Promise<void> => {
  const { userId } = actor;
  const shown = await checkOwnPassword(context, actor, password);
  await deleteAccount(context, { userId, actor, check: (trx) => lockShown(trx, actor, shown) });
  context.users.forget(userId);
};

export interface Deletion {
  readonly userId: string;
  readonly actor: UserActor | OperatorActor;
  /** Throws when it must not be after all; asked with the account locked. */
  readonly check?: (trx: Transaction<Schema>) => Promise<void>;
}

/** false: it was deleted before. */
export const deleteAccount = async ({ db, clock }: OperatorContext, deletion: Deletion): Promise<boolean> => {
  const begun = await db.transaction().execute((trx) => begin(trx, deletion, clock.now()));
  try {
    // Here already, so that whoever is told that it is gone finds nothing of it. The job does the same, again and again.
    await eraseTraces(db, deletion.userId, clock.now());
  } catch (error) {
    if (!(error instanceof DatabaseAway)) throw error;
  }
  return begun;
};

/**
 * Locks nothing that a transaction of an edge's records holds: a change of an address waits for those who point at its row. So keys
 * and log are not touched here. Nobody comes in with a key of a suspended account, which it is from now on for all who look.
 */
const begin = async (trx: Transaction<Schema>, { userId, actor, check }: Deletion, nowMs: number): Promise<boolean> => {
  const now = new Date(nowMs);
  const user = await trx
    .selectFrom('users')
    .select(['email', 'deleted_at'])
    .where('id', '=', userId)
    .forUpdate()
    .executeTakeFirst();
  if (user === undefined || user.deleted_at !== null) return false;
  await check?.(trx);
  await trx
    .updateTable('users')
    .set((row) => ({
      // No address: nobody can type it, and none is compared with it.
      email: `deleted:${userId}`,
      display_name: null,
      password_hash: null,
      email_verified_at: null,
      status: 'suspended' as const,
      deleted_at: now,
      epoch: row('epoch', '+', 1),
    }))
    .where('id', '=', userId)
    .execute();
  await trx.insertInto('account_deletions').values({ user_id: userId, begun_at: now, next_try_at: now }).execute();
  await trx.deleteFrom('invites').where('email', '=', user.email).execute();
  await trx.deleteFrom('mail_outbox').where('recipient', '=', user.email).execute();
  await forgetRequests(trx, user.email);
  await writeAudit(trx, { actor: actorName(actor), action: 'user.deleted', userId });
  await announceEnd(trx, userId);
  return true;
};

/** Those that a job holds at this moment lead to nobody: it would wait for us. */
const forgetRequests = (trx: Transaction<Schema>, email: string): Promise<unknown> =>
  sql`
    delete from mail_requests where id in (
      select id from mail_requests where email = ${email} order by id for update skip locked
    )`.execute(trx);

/** Every edge ends its sessions, and with them its tunnels. */
export const announceEnd = async (trx: Transaction<Schema>, accountId: string): Promise<void> => {
  const { code, message } = new Fault('ACCOUNT_DELETED');
  await announceChange(trx, { kind: 'account-closed', accountId, code, message });
};
