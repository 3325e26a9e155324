// The mails that the platform sends: about an address, a password, an invitation, a payment, a spend cap.
import { type CapNotice, showDollars } from '../../billing/rules/rating.rules.ts';
import { PAST_DUE_GRACE_MS } from '../../billing/rules/subscription.rules.ts';
import { BILLING_PAGE, linkTo, type Mail, renderMail } from './mail-template.ts';

/** The mail that proves an address. */
export const verificationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Verify your email',
    opening: 'Confirm your email to finish signing up.',
    action: 'Verify email',
    link: linkTo(publicUrl, `/auth/verify-email/${token}`),
    closing: [
      'The link works once, for 24 hours.',
      "If you didn't sign up, ignore this mail: nobody can use the account without the link.",
    ],
  });

/** The mail that lets somebody choose a new password. */
export const resetMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Choose a new password',
    opening: `Choose a new password for the account ${recipient}.`,
    action: 'Choose a new password',
    link: resetLink(publicUrl, token),
    closing: [
      'The link works once, for one hour. It logs you out everywhere.',
      "If you didn't ask for it, ignore this mail: your password stays as it is.",
    ],
  });

export const resetLink = (publicUrl: string, token: string): string =>
  linkTo(publicUrl, `/app/reset-password?token=${token}`);

/** To somebody whom an operator invites: nobody has the address here yet. */
export const invitationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'You are invited',
    opening: `Sign up with ${recipient} and put your localhost online.`,
    action: 'Accept the invitation',
    link: invitationLink(publicUrl, token),
    closing: [
      'The link works once, for 7 days, and for this address.',
      "If you didn't expect it, ignore this mail: there is no account yet.",
    ],
  });

export const invitationLink = (publicUrl: string, token: string): string =>
  linkTo(publicUrl, `/app/signup?invite=${token}`);

/** To somebody for whom an operator made an account, without a password. */
export const welcomeMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Your account is ready',
    opening: `Choose a password for the account ${recipient}, then log in.`,
    action: 'Choose a password',
    link: resetLink(publicUrl, token),
    closing: [
      'The link works once, for 7 days. After that, use "Forgot password?" on the log-in page.',
      "If you didn't expect it, ignore this mail: nobody can log in without a password.",
    ],
  });

/** To the address that an account shall have from now on: whoever opens the link has read it. */
export const newAddressMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Confirm your new email',
    opening: 'Confirm this address to use it for your account.',
    action: 'Confirm email',
    link: linkTo(publicUrl, `/auth/verify-email/${token}`),
    closing: [
      'The link works once, for 24 hours. Until then your account keeps its present address.',
      "If you didn't ask for it, ignore this mail: nothing changes.",
    ],
  });

/** To the address of before: its owner must not learn it by being locked out. */
export const addressChangedMail = (publicUrl: string, recipient: string, newAddress: string): Mail =>
  renderMail({
    recipient,
    subject: 'Your email was changed',
    opening: `Your account now uses ${newAddress} instead of ${recipient}. Log in with the new address from now on.`,
    action: 'Open settings',
    link: linkTo(publicUrl, '/app/settings'),
    closing: ["If it wasn't you, write to the operator of this platform now: somebody knows your password."],
  });

const GRACE_DAYS = PAST_DUE_GRACE_MS / (24 * 60 * 60 * 1000);

/** The mail about a payment that failed. */
export const paymentFailedMail = (publicUrl: string, recipient: string): Mail =>
  renderMail({
    recipient,
    subject: 'A payment failed',
    opening: `A payment for the account ${recipient} failed. Check the payment method and the open invoice:`,
    action: 'Open billing',
    link: linkTo(publicUrl, BILLING_PAGE),
    closing: [
      `Nothing changes for ${GRACE_DAYS} days. After that your tunnels stop until you pay the invoice.`,
      'If you have paid already, ignore this mail.',
    ],
  });

export interface CapNews {
  readonly percent: CapNotice;
  readonly capCents: number;
  readonly usedCents: number;
}

/** The mails about a spend cap: most of it is used, or all of it. */
export const capMail = (publicUrl: string, recipient: string, { percent, capCents, usedCents }: CapNews): Mail => {
  const cap = showDollars(capCents);
  const used = showDollars(usedCents);
  const link = linkTo(publicUrl, BILLING_PAGE);
  if (percent === 100) {
    return renderMail({
      recipient,
      subject: `Your spend cap of ${cap} is reached`,
      opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. Its tunnels stop until you raise the cap or the month ends.`,
      action: 'Change the spend cap',
      link,
      closing: [
        'Above your usage, a new cap lets tunnels in at once. The next month, in UTC, begins at zero.',
        'To keep the cap, do nothing: we charge no more usage this month.',
      ],
    });
  }
  return renderMail({
    recipient,
    subject: `${percent} % of your spend cap is used`,
    opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. At the cap, its tunnels stop until you raise it or the month ends.`,
    action: 'Change the spend cap',
    link,
    closing: ['To keep the cap, do nothing.'],
  });
};

export interface CertificateNews {
  readonly name: string;
  readonly endsAt: number;
  readonly reason: string;
}

/** The mail about a certificate that is about to end and cannot be renewed. */
export const certificateMail = (
  publicUrl: string,
  recipient: string,
  { name, endsAt, reason }: CertificateNews,
): Mail => {
  const until = `${new Date(endsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return renderMail({
    recipient,
    subject: `The certificate of ${name} ends soon`,
    opening: `The certificate of ${name} ends at ${until} and could not be renewed: ${reason}. After that browsers refuse to open it.`,
    action: 'Look at the domain',
    link: linkTo(publicUrl, '/app/domains'),
    closing: ['We try again every hour. Most often a DNS record is missing or leads elsewhere.'],
  });
};
