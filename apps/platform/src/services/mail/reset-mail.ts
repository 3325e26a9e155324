// The mail that lets somebody choose a new password.

import { writeLetter } from './letter.ts';
import { linkTo } from './link-to.ts';
import type { Mail } from './queue-mail.ts';

export const resetMail = (publicUrl: string, recipient: string, token: string): Mail =>
  writeLetter({
    recipient,
    subject: 'Choose a new password',
    opening: `Somebody asked for a new password of the account ${recipient}. To choose one, please open this link:`,
    action: 'Choose a new password',
    link: linkTo(publicUrl, `/app/reset-password?token=${token}`),
    closing: [
      'The link works once, for one hour. Everywhere you are logged in, you will have to log in again.',
      'If it was not you, there is nothing to do: your password stays as it is.',
    ],
  });
