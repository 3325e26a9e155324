// Sets a new password with the token of a mail. It ends all sessions and access tokens, and proves the address.

import type { MessageBody, PasswordReset } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit.ts';
import type { AuthContext } from './auth-context.ts';
import { checkNewPassword } from './checked-input.ts';
import { isMailTokenGood, takeMailToken } from './mail-token.ts';
import { endFamilies } from './refresh-token.ts';

type Context = Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users'>;

export const resetPassword = async (context: Context, { token, password }: PasswordReset): Promise<MessageBody> => {
  const { db, clock, passwords, users } = context;
  checkNewPassword(password);
  // A glance before the work of a hash; the transaction decides.
  if (!(await isMailTokenGood(db, 'reset', token, clock.now()))) throw new Fault('MAIL_TOKEN_INVALID');
  const password_hash = await passwords.hash(password);
  const now = clock.now();
  const userId = await db.transaction().execute(async (trx) => {
    const owner = await takeMailToken(trx, 'reset', token, now);
    if (owner === null) throw new Fault('MAIL_TOKEN_INVALID');
    await trx
      .updateTable('users')
      .set((user) => ({
        password_hash,
        epoch: user('epoch', '+', 1),
        email_verified_at: user.fn.coalesce('email_verified_at', user.val(new Date(now))),
      }))
      .where('id', '=', owner)
      .execute();
    await endFamilies(trx, owner, now);
    await writeAudit(trx, { actor: `user:${owner}`, action: 'password.reset', userId: owner });
    return owner;
  });
  users.forget(userId);
  return { message: 'the password is changed: log in with the new one' };
};
