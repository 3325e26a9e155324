// Mails about a custom domain: the verification record is missing, the domain has lapsed, or another account has verified the domain.

import { type DomainMail } from '@tunnel/certificates/domains';
import { CERTIFICATES_LIMITS } from '@tunnel/certificates/limits';
import { linkTo, type Mail, renderMail } from './mail-template.ts';

export interface DomainMailNews {
  readonly mail: DomainMail;
  /** Domain name in A-labels (Punycode). */
  readonly name: string;
}

const ABSENT_DAYS = CERTIFICATES_LIMITS.DOMAIN_ABSENT_MS / (24 * 60 * 60 * 1000);

export const domainMail = (publicUrl: string, recipient: string, { mail, name }: DomainMailNews): Mail =>
  renderMail({ recipient, action: 'Open domains', link: linkTo(publicUrl, '/app/domains'), ...TEXTS[mail](name) });

interface DomainText {
  readonly subject: string;
  readonly opening: string;
  readonly closing: readonly string[];
}

const TEXTS: Readonly<Record<DomainMail, (name: string) => DomainText>> = {
  'proof-missing': (name) => ({
    subject: `The DNS record for ${name} is missing`,
    opening: `We can no longer find the DNS record that verifies ${name} for your Hatchway account. Add the record shown on the domains page:`,
    closing: [
      `The domain keeps working for ${ABSENT_DAYS} days. After that, new tunnels can't use ${name}, and the certificate is not renewed.`,
      'If you no longer need the domain, remove it on the same page.',
    ],
  }),
  lapsed: (name) => ({
    subject: `${name} has lapsed`,
    opening: `The DNS record that verifies ${name} for your Hatchway account has been missing for ${ABSENT_DAYS} days. New tunnels can't use the domain, and the certificate is not renewed. Add the record shown on the domains page:`,
    closing: [
      'Open tunnels stay open. The domain works again once we find the record.',
      'If you no longer need the domain, remove it on the same page.',
    ],
  }),
  'moved-away': (name) => ({
    subject: `${name} has moved to another account`,
    opening: `Another Hatchway account has verified ${name} with a DNS record. Your tunnels on the domain have been closed.`,
    closing: [
      "If you or a colleague didn't make the change, check who can edit the domain's DNS records. To get the domain back, replace the other account's record with your own.",
    ],
  }),
};
