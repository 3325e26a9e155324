// The mail about a payment that failed.
import { PAST_DUE_GRACE_MS } from '@tunnel/core';
import { writeLetter } from './letter.ts';
import { BILLING_PAGE, linkTo } from './link-to.ts';
import type { Mail } from './queue-mail.ts';

const GRACE_DAYS = PAST_DUE_GRACE_MS / (24 * 60 * 60 * 1000);

export const paymentFailedMail = (publicUrl: string, recipient: string): Mail =>
  writeLetter({
    recipient,
    subject: 'A payment failed',
    opening: `A payment of the account ${recipient} failed. To look at the payment method and the open invoice, please open this page:`,
    action: 'Look at the payment',
    link: linkTo(publicUrl, BILLING_PAGE),
    closing: [
      `Nothing changes for ${GRACE_DAYS} days. After that, new tunnels are refused until the invoice is paid; those that are open stay open.`,
      'If you have paid meanwhile, there is nothing to do.',
    ],
  });
