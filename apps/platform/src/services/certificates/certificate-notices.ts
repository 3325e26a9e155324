// Audit entries and mails about a changed certificate, written in the transaction of the change.
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { queueMail } from '../mail/mail-template.ts';
import { certificateMail } from '../mail/mails.ts';
import { writeAudit } from '../shared/audit.ts';
import type { KeptCertificate } from './certificate-rows.ts';

export interface NoticeSettings {
  readonly publicUrl: string;
  readonly now: number;
}

/** Writes audit entries and, if necessary, a mail for a changed certificate. Returns true if a mail was queued. */
export const noteCertificate = async (
  trx: Transaction<Schema>,
  before: KeptCertificate,
  after: KeptCertificate,
  { publicUrl, now }: NoticeSettings,
): Promise<boolean> => {
  const { names, accountId: userId, life } = after;
  const about = { actor: 'system', ...(userId === null ? {} : { userId }) };
  if (after.certificate !== null && after.certificate.serial !== before.certificate?.serial) {
    const { issuer, serial, notAfter } = after.certificate;
    const details = { names, issuer, serial, not_after: new Date(notAfter).toISOString() };
    await writeAudit(trx, { ...about, action: 'certificate.issued', details });
  }
  if (life.failures > before.life.failures) {
    const details = { names, reason: life.lastError, failures: life.failures };
    await writeAudit(trx, { ...about, action: 'certificate.failed', details });
  }
  // At most one mail per day; `warnedAt` has the time. Problems with the operator's names are only logged.
  if (userId === null || life.warnedAt === null || life.warnedAt === before.life.warnedAt) return false;
  const owner = await trx
    .selectFrom('users')
    .select('email')
    .where('id', '=', userId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (owner === undefined) return false;
  const news = { name: names.join(', '), endsAt: life.issued?.notAfter ?? now, reason: life.lastError ?? '' };
  await queueMail(trx, certificateMail(publicUrl, owner.email, news), { userId, now });
  return true;
};
