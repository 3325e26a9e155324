// Passwords of accounts: rules for a new password, the password check before irreversible actions, and the change of a password.
import type { PasswordChange, PasswordChanged } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { problemOfPassword } from '@tunnel/rules/sign-in';
import { sha256Hex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { writeAudit } from '../shared/audit.ts';
import type { UserActor } from '../shared/service-context.ts';
import type { AuthContext } from './auth-context.ts';

/** Throws API_BAD_REQUEST with the name of the field and the violated rule if the password is not acceptable. */
export const checkNewPassword = (password: string, field: string): void => {
  const problem = problemOfPassword(password);
  if (problem !== null) throw new Fault('API_BAD_REQUEST', { reason: `${field}: ${problem}` });
};

/** State of the account when the password was checked. If the state has changed since, the check is void. */
export interface ShownPassword {
  readonly passwordHash: string | null;
  readonly epoch: number;
}

/**
 * Checks the password of a signed-in user. Throws PASSWORD_WRONG and writes an audit entry if the password is wrong, because a caller
 * with an access token but no password is suspicious.
 */
export const checkOwnPassword = async (
  { db, passwords }: Pick<AuthContext, 'db' | 'passwords'>,
  { userId }: UserActor,
  password: string,
): Promise<ShownPassword> => {
  const user = await db
    .selectFrom('users')
    .select(['password_hash', 'auth_method', 'epoch'])
    .where('id', '=', userId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (user === undefined) throw new Fault('ACCESS_TOKEN_INVALID');
  const { auth_method: method, password_hash: passwordHash, epoch } = user;
  if (method !== 'password') throw new Fault('ACCOUNT_EXTERNAL', { method });
  if (await passwords.matches(passwordHash, password)) return { passwordHash, epoch };
  await writeAudit(db, { actor: `user:${userId}`, action: 'password.refused', userId });
  throw new Fault('PASSWORD_WRONG');
};

/**
 * Locks the account's row and returns its password hash and epoch. Both may have changed since a password was checked, because hashing
 * takes a while.
 */
export const lockPassword = (trx: Transaction<Schema>, userId: string) =>
  trx.selectFrom('users').select(['password_hash', 'epoch']).where('id', '=', userId).forUpdate().executeTakeFirst();

/** Locks the account's row. Throws if the password or the epoch has changed since the password was checked. */
export const lockShown = async (
  trx: Transaction<Schema>,
  { userId }: UserActor,
  { passwordHash, epoch }: ShownPassword,
): Promise<void> => {
  const user = await lockPassword(trx, userId);
  // The hashes are not compared: a concurrent sign-in may have rehashed the same password. The epoch does not change then.
  if (user === undefined || user.epoch !== epoch || (passwordHash === null) !== (user.password_hash === null)) {
    throw new Fault('PASSWORD_WRONG');
  }
};

type Context = Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users' | 'accessTokens'>;

/**
 * Sets a new password and ends all sessions except the session of `refreshToken`. If `refreshToken` is null, all sessions end. Access
 * tokens become invalid at once, so the response contains a new access token. Pending password reset links become invalid too, because
 * they were requested for the old password.
 */
export const changePassword = async (
  context: Context,
  actor: UserActor,
  input: PasswordChange & { readonly refreshToken: string | null },
): Promise<PasswordChanged> => {
  const { db, clock, passwords, users, accessTokens } = context;
  const { userId } = actor;
  checkNewPassword(input.new_password, 'new_password');
  const shown = await checkOwnPassword(context, actor, input.current_password);
  const password_hash = await passwords.hash(input.new_password);
  const now = new Date(clock.now());
  const { epoch, ended } = await db.transaction().execute(async (trx) => {
    await lockShown(trx, actor, shown);
    const changed = await trx
      .updateTable('users')
      .set((user) => ({ password_hash, epoch: user('epoch', '+', 1) }))
      .where('id', '=', userId)
      .returning('epoch')
      .executeTakeFirstOrThrow();
    const others = await endOthers(trx, userId, input.refreshToken, now);
    await trx
      .updateTable('mail_tokens')
      .set({ used_at: now })
      .where('user_id', '=', userId)
      .where('kind', '=', 'reset')
      .where('used_at', 'is', null)
      .execute();
    await writeAudit(trx, { actor: `user:${userId}`, action: 'password.changed', userId });
    return { epoch: changed.epoch, ended: others };
  });
  users.forget(userId);
  return {
    message: 'password changed',
    access_token: await accessTokens.issue({ id: userId, epoch }),
    ended_sessions: ended,
  };
};

/**
 * Ends all sessions of a user except the session of the refresh token. Returns the number of ended sessions. A refresh token of another
 * user protects no session.
 */
const endOthers = async (
  trx: Transaction<Schema>,
  userId: string,
  refreshToken: string | null,
  now: Date,
): Promise<number> => {
  const { numAffectedRows } = await sql`
    update refresh_families set revoked_at = ${now}
    where user_id = ${userId} and revoked_at is null and id not in (
      select family_id from refresh_tokens where token_hash = ${refreshToken === null ? '' : sha256Hex(refreshToken)}
    )`.execute(trx);
  return Number(numAffectedRows ?? 0);
};
