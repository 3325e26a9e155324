// Starts the deletion of an account. A single transaction locks out every user and removes the owner's data from the row. The slower
// parts (log, tunnels and subscription) are left to continue-deletion.ts, which works on a row created here.
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

/**
 * Deletes an account at the request of its owner, after checking the password. Of two concurrent requests, both report that the account
 * is deleted.
 */
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
  /** Throws if the account must not be deleted. Called while the account is locked. */
  readonly check?: (trx: Transaction<Schema>) => Promise<void>;
}

/** Deletes an account. Returns false if the account was deleted already. */
export const deleteAccount = async ({ db, clock }: OperatorContext, deletion: Deletion): Promise<boolean> => {
  const begun = await db.transaction().execute((trx) => begin(trx, deletion, clock.now()));
  try {
    // Erase the data before the response, so that the account's data is gone when the caller learns of the deletion. The job repeats the
    // same statements later.
    await eraseTraces(db, deletion.userId, clock.now());
  } catch (error) {
    if (!(error instanceof DatabaseAway)) throw error;
  }
  return begun;
};

/**
 * First transaction of a deletion. The change of the address waits for transactions with a foreign key to the account's row, such as
 * transactions that store records of edges. To avoid a deadlock, this transaction must not hold locks that such a transaction needs, so
 * keys and log entries are left untouched. Keys stop working anyway: the account counts as suspended from now on.
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
      // Placeholder that is not a valid address, so no user can enter it and no address equals it.
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

/**
 * Deletes pending mail requests for the address. Rows locked by a job are skipped, because waiting for the job could deadlock; the job
 * finds no account for such a request and sends nothing.
 */
const forgetRequests = (trx: Transaction<Schema>, email: string): Promise<unknown> =>
  sql`
    delete from mail_requests where id in (
      select id from mail_requests where email = ${email} order by id for update skip locked
    )`.execute(trx);

/** Notifies every edge to end the account's sessions and, with the sessions, its tunnels. */
export const announceEnd = async (trx: Transaction<Schema>, accountId: string): Promise<void> => {
  const { code, message } = new Fault('ACCOUNT_DELETED');
  await announceChange(trx, { kind: 'account-closed', accountId, code, message });
};
