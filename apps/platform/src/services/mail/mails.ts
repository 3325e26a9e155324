// Mails sent by the platform: about an address, a password, an invitation, a payment, a spend cap, a certificate.
import { type CapNotice, showDollars } from '../../billing/rules/rating.rules.ts';
import { PAST_DUE_GRACE_MS } from '../../billing/rules/subscription.rules.ts';
import { BILLING_PAGE, linkTo, type Mail, renderMail } from './mail-template.ts';

/** Mail with the link that verifies an address. */
export const verificationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Verify your Hatchway email address',
    opening: 'Verify your email address to finish signing up for Hatchway.',
    action: 'Verify email',
    link: linkTo(publicUrl, `/auth/verify-email/${token}`),
    closing: [
      'The link works once and expires in 24 hours.',
      "If you didn't sign up, ignore this email. The account can't be used without the link.",
    ],
  });

/** Mail with the link to choose a new password. */
export const resetMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Reset your Hatchway password',
    opening: `Choose a new password for your account ${recipient}.`,
    action: 'Choose a new password',
    link: resetLink(publicUrl, token),
    closing: [
      'The link works once and expires in one hour. A new password signs you out everywhere.',
      "If you didn't request a new password, ignore this email. Your password stays the same.",
    ],
  });

export const resetLink = (publicUrl: string, token: string): string =>
  linkTo(publicUrl, `/app/reset-password?token=${token}`);

/** Mail with an operator's invitation, to an address without an account. */
export const invitationMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'You are invited to Hatchway',
    opening: `You have been invited to Hatchway, where you can put localhost online. Sign up with ${recipient}.`,
    action: 'Accept the invitation',
    link: invitationLink(publicUrl, token),
    closing: [
      'The link works once, only for this email address, and expires in 7 days.',
      "If you didn't expect an invitation, ignore this email. No account has been created.",
    ],
  });

export const invitationLink = (publicUrl: string, token: string): string =>
  linkTo(publicUrl, `/app/signup?invite=${token}`);

/** Mail to the owner of an account created by an operator without a password. */
export const welcomeMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Your Hatchway account is ready',
    opening: `Choose a password for your account ${recipient}, then sign in.`,
    action: 'Choose a password',
    link: resetLink(publicUrl, token),
    closing: [
      'The link works once and expires in 7 days. After that, use "Forgot password?" on the sign-in page.',
      "If you didn't expect this email, ignore it. Without a password, the account can't be used.",
    ],
  });

/** Mail to the future address of an account. The link proves access to the mailbox. */
export const newAddressMail = (publicUrl: string, recipient: string, token: string): Mail =>
  renderMail({
    recipient,
    subject: 'Confirm your new email address',
    opening: 'Confirm this email address for your Hatchway account.',
    action: 'Confirm email',
    link: linkTo(publicUrl, `/auth/verify-email/${token}`),
    closing: [
      'The link works once and expires in 24 hours. Until you confirm, your account keeps the current address.',
      "If you didn't request the change, ignore this email.",
    ],
  });

/** Notice to the old address after a change of address, so that the owner notices a takeover before the next sign-in fails. */
export const addressChangedMail = (publicUrl: string, recipient: string, newAddress: string): Mail =>
  renderMail({
    recipient,
    subject: 'Your Hatchway email address was changed',
    opening: `Your Hatchway account now uses ${newAddress} instead of ${recipient}. Sign in with the new address from now on.`,
    action: 'Open settings',
    link: linkTo(publicUrl, '/app/settings'),
    closing: [
      "If you didn't make the change, contact the operator of this server immediately: another person may know your password.",
    ],
  });

const GRACE_DAYS = PAST_DUE_GRACE_MS / (24 * 60 * 60 * 1000);

/** Mail about a failed payment. */
export const paymentFailedMail = (publicUrl: string, recipient: string): Mail =>
  renderMail({
    recipient,
    subject: 'Your Hatchway payment failed',
    opening: `A payment for your account ${recipient} failed. Check your payment method and pay the open invoice:`,
    action: 'Open billing',
    link: linkTo(publicUrl, BILLING_PAGE),
    closing: [
      `Your tunnels keep working for ${GRACE_DAYS} days. After that, tunnels stop until the invoice is paid.`,
      'If you have already paid, ignore this email.',
    ],
  });

export interface CapNews {
  readonly percent: CapNotice;
  readonly capCents: number;
  readonly usedCents: number;
}

/** Mail about a spend cap that is mostly or fully used. */
export const capMail = (publicUrl: string, recipient: string, { percent, capCents, usedCents }: CapNews): Mail => {
  const cap = showDollars(capCents);
  const used = showDollars(usedCents);
  const link = linkTo(publicUrl, BILLING_PAGE);
  if (percent === 100) {
    return renderMail({
      recipient,
      subject: `Spend limit of ${cap} reached`,
      opening: `Your Hatchway account ${recipient} has used ${used} this month and reached the spend limit of ${cap}. Your tunnels stop until you raise the limit or the month ends.`,
      action: 'Change the spend limit',
      link,
      closing: [
        'Tunnels can start again as soon as the limit is above your usage. Usage starts at zero again next month (UTC).',
        "To keep the limit, do nothing. You won't be charged for more usage this month.",
      ],
    });
  }
  return renderMail({
    recipient,
    subject: `${percent} % of your spend limit used`,
    opening: `Your Hatchway account ${recipient} has used ${used} of the ${cap} spend limit this month. When the limit is reached, your tunnels stop until you raise the limit or the month ends.`,
    action: 'Change the spend limit',
    link,
    closing: ['To keep the limit, do nothing.'],
  });
};

export interface CertificateNews {
  readonly name: string;
  readonly endsAt: number;
  readonly reason: string;
}

/** Mail about a certificate that expires soon and cannot be renewed. */
export const certificateMail = (
  publicUrl: string,
  recipient: string,
  { name, endsAt, reason }: CertificateNews,
): Mail => {
  const until = `${new Date(endsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return renderMail({
    recipient,
    subject: `The certificate for ${name} expires soon`,
    opening: `The certificate for ${name} expires on ${until} and could not be renewed: ${reason}. After that, browsers show a security warning.`,
    action: 'Check the domain',
    link: linkTo(publicUrl, '/app/domains'),
    closing: ['We retry every hour. The usual cause is a DNS record that is missing or points to another server.'],
  });
};
