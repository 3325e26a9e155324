// Makes an account, and sends the mail that proves its address. Nobody can log in before that.

import type { MessageBody, Registration } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit.ts';
import { queueMail } from '../mail/mail-template.ts';
import { verificationMail } from '../mail/mails.ts';
import type { AuthContext } from './auth-context.ts';
import { checkNewPassword, newAddress } from './checked-input.ts';
import { giveMailToken } from './mail-token.ts';

/** Of [platform.plans]; every account begins with it. */
const FIRST_PLAN = 'free';

type Context = Pick<AuthContext, 'db' | 'clock' | 'settings' | 'passwords' | 'mailWaits'>;

export const register = async (context: Context, input: Registration): Promise<MessageBody> => {
  const { db, clock, settings, passwords, mailWaits } = context;
  const email = newAddress(input.email);
  checkNewPassword(input.password);
  // A glance before the work of a hash; the index decides.
  const taken = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  if (taken !== undefined) throw new Fault('ACCOUNT_EXISTS');
  const password_hash = await passwords.hash(input.password);
  const now = clock.now();
  await db.transaction().execute(async (trx) => {
    const user = await trx
      .insertInto('users')
      .values({
        email,
        display_name: input.display_name ?? null,
        password_hash,
        plan: FIRST_PLAN,
        created_at: new Date(now),
      })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (user === undefined) throw new Fault('ACCOUNT_EXISTS');
    const token = await giveMailToken(trx, 'verify', user.id, now);
    await queueMail(trx, verificationMail(settings.public_url, email, token), now);
    await writeAudit(trx, { actor: `user:${user.id}`, action: 'user.registered', userId: user.id });
  });
  mailWaits();
  return { message: 'registered: open the link in the mail that we sent you' };
};
