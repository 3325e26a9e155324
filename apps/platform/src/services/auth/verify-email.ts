// Proves an address: whoever has the token has read the mail.

import type { MessageBody } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit.ts';
import type { AuthContext } from './auth-context.ts';
import { isMailTokenGood, takeMailToken } from './mail-token.ts';

export const verifyEmail = async (
  { db, clock, users }: Pick<AuthContext, 'db' | 'clock' | 'users'>,
  token: string,
): Promise<MessageBody> => {
  const now = clock.now();
  const userId = await db.transaction().execute(async (trx) => {
    const owner = await takeMailToken(trx, 'verify', token, now);
    if (owner === null) throw new Fault('MAIL_TOKEN_INVALID');
    await trx
      .updateTable('users')
      .set((user) => ({ email_verified_at: user.fn.coalesce('email_verified_at', user.val(new Date(now))) }))
      .where('id', '=', owner)
      .execute();
    await writeAudit(trx, { actor: `user:${owner}`, action: 'user.verified', userId: owner });
    return owner;
  });
  users.forget(userId);
  return { message: 'the e-mail address is verified: you can log in now' };
};

/** What a HEAD asks: programs look at links before people do, and must not use them up. */
export const canVerifyEmail = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  token: string,
): Promise<MessageBody> => {
  if (!(await isMailTokenGood(db, 'verify', token, clock.now()))) throw new Fault('MAIL_TOKEN_INVALID');
  return { message: 'the link is good' };
};
