// The mails that the platform sends: about an address, a password, a payment, a spend cap.
import { type CapNotice, PAST_DUE_GRACE_MS, showDollars } from '@tunnel/core';
import { BILLING_PAGE, linkTo, type Mail, renderMail } from './mail-template.ts';

/** The mail that proves an address. */
export const verificationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
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

/** The mail that lets somebody choose a new password. */
export const resetMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
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

const GRACE_DAYS = PAST_DUE_GRACE_MS / (24 * 60 * 60 * 1000);

/** The mail about a payment that failed. */
export const paymentFailedMail = (publicUrl: string, recipient: string): Mail =>
  renderMail({
    recipient,
    subject: 'A payment failed',
    opening: `A payment of the account ${recipient} failed. To look at the payment method and the open invoice, please open this page:`,
    action: 'Look at the payment',
    link: linkTo(publicUrl, BILLING_PAGE),
    closing: [
      `Nothing changes for ${GRACE_DAYS} days. After that the tunnels are closed, and new ones refused, until the invoice is paid.`,
      'If you have paid meanwhile, there is nothing to do.',
    ],
  });

export interface CapNews {
  readonly percent: CapNotice;
  readonly capCents: number;
  readonly usedCents: number;
}

/** The mails about a spend cap: most of it is used, or all of it. */
export const capMail = (publicUrl: string, recipient: string, { percent, capCents, usedCents }: CapNews): Mail => {
  const [cap, used] = [showDollars(capCents), showDollars(usedCents)];
  const link = linkTo(publicUrl, BILLING_PAGE);
  if (percent === 100) {
    return renderMail({
      recipient,
      subject: `Your spend cap of ${cap} is reached`,
      opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. Its tunnels are closed, and new ones are refused. To raise or remove the cap, please open this page:`,
      action: 'Look at the spend cap',
      link,
      closing: [
        'As soon as the cap is above the usage, tunnels can be opened again. The next month, in UTC, begins at zero.',
        'If the cap is there for a reason, there is nothing to do: no more usage is charged this month.',
      ],
    });
  }
  return renderMail({
    recipient,
    subject: `${percent} % of your spend cap is used`,
    opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. When the cap is reached, its tunnels are closed, and new ones are refused. To see the usage, or to change the cap, please open this page:`,
    action: 'Look at the spend cap',
    link,
    closing: ['If the cap is there for a reason, there is nothing to do.'],
  });
};
