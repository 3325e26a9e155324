// The mail that proves an address.

import { writeLetter } from './letter.ts';
import { linkTo } from './link-to.ts';
import type { Mail } from './queue-mail.ts';

export const verificationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  writeLetter({
    recipient,
    subject: 'Please verify your e-mail address',
    opening: `An account was made with the address ${recipient}. To use it, please open this link:`,
    action: 'Verify the address',
    link: linkTo(publicUrl, `/auth/verify-email/${token}`),
    closing: [
      'The link works once, for 24 hours.',
      'If it was not you, there is nothing to do: without the link nobody can use the account.',
    ],
  });
