// Sends a link to choose a new password, if there is an account to send it to. The answer does not tell.

import type { EmailOnly, MessageBody } from '@tunnel/contract';
import { normalizeAddress } from '@tunnel/core';
import { queueMail } from '../mail/mail-template.ts';
import { resetMail } from '../mail/mails.ts';
import type { AuthContext } from './auth-context.ts';
import { giveMailToken } from './mail-token.ts';

type Context = Pick<AuthContext, 'db' | 'clock' | 'settings' | 'mailWaits'>;

export const FORGOT_ANSWER: MessageBody = {
  message: 'if the address belongs to an account, a link to choose a new password is on its way',
};

export const forgotPassword = async (context: Context, input: EmailOnly): Promise<MessageBody> => {
  const { db, clock, settings, mailWaits } = context;
  const email = normalizeAddress(input.email);
  const sent = await db.transaction().execute(async (trx) => {
    const user = await trx
      .selectFrom('users')
      .select('id')
      .where('email', '=', email)
      .where('auth_method', '=', 'password')
      .executeTakeFirst();
    if (user === undefined) return false;
    const token = await giveMailToken(trx, 'reset', user.id, clock.now());
    await queueMail(trx, resetMail(settings.public_url, email, token), clock.now());
    return true;
  });
  if (sent) mailWaits();
  return FORGOT_ANSWER;
};
