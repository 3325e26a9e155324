// Sends the mail that proves an address once more, if there is an account that waits for it. The answer does not tell.

import type { EmailOnly, MessageBody } from '@tunnel/contract';
import { normalizeAddress } from '@tunnel/core';
import { queueMail } from '../mail/mail-template.ts';
import { verificationMail } from '../mail/mails.ts';
import type { AuthContext } from './auth-context.ts';
import { giveMailToken } from './mail-token.ts';

type Context = Pick<AuthContext, 'db' | 'clock' | 'settings' | 'mailWaits'>;

export const RESEND_ANSWER: MessageBody = {
  message: 'if the address belongs to an account that is not verified yet, a new link is on its way',
};

export const resendVerification = async (context: Context, input: EmailOnly): Promise<MessageBody> => {
  const { db, clock, settings, mailWaits } = context;
  const email = normalizeAddress(input.email);
  const sent = await db.transaction().execute(async (trx) => {
    const user = await trx
      .selectFrom('users')
      .select('id')
      .where('email', '=', email)
      .where('auth_method', '=', 'password')
      .where('email_verified_at', 'is', null)
      .executeTakeFirst();
    if (user === undefined) return false;
    const token = await giveMailToken(trx, 'verify', user.id, clock.now());
    await queueMail(trx, verificationMail(settings.public_url, email, token), clock.now());
    return true;
  });
  if (sent) mailWaits();
  return RESEND_ANSWER;
};
