// The mails about an own domain: its proof is missing, it has lapsed, or another account has it now.

import { type DomainMail } from '@tunnel/certificates/domains';
import { CERTIFICATES_LIMITS } from '@tunnel/certificates/limits';
import { linkTo, type Mail, renderMail } from './mail-template.ts';

export interface DomainMailNews {
  readonly mail: DomainMail;
  /** As A-labels. */
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
    subject: `The DNS record of ${name} is missing`,
    opening: `We no longer find the DNS record that proves ${name} is yours. Set it again; this page shows which one:`,
    closing: [
      `Nothing changes for ${ABSENT_DAYS} days. After that no new tunnel can use ${name}, and its certificate is not renewed.`,
      'If you no longer use the domain here, remove it there.',
    ],
  }),
  lapsed: (name) => ({
    subject: `${name} has lapsed`,
    opening: `The DNS record that proves ${name} is yours has been missing for ${ABSENT_DAYS} days. No new tunnel can use it, and its certificate is not renewed. Set the record again; this page shows which one:`,
    closing: [
      'Tunnels that are open stay open. Once we find the record, everything works as before.',
      'If you no longer use the domain here, remove it there.',
    ],
  }),
  'moved-away': (name) => ({
    subject: `${name} has moved to another account`,
    opening: `DNS now proves that ${name} belongs to another account here. Your tunnels on it are closed.`,
    closing: [
      "If it wasn't you or somebody you work with, check who can change the DNS records of the domain. With your record in the place of the other one it is yours again.",
    ],
  }),
};
