// Outbox queries of the mail sender: claim mails for a limited time, then mark them as sent, as waiting for a retry, or as given up.
// Several platform processes can work at the same time. The text of a finished mail is erased, because its link is a secret.
import type { Db } from '../db/database.ts';
import type { WaitingMail } from './mail-transport.ts';

/**
 * Duration of a claim on a mail. No other process takes a claimed mail; the sender renews the claim while sending. Mails of a process
 * that died wait for the end of the claim.
 */
export const MAIL_CLAIM_MS = 10_000;

export interface ClaimedMail extends WaitingMail {
  /** Number of delivery attempts, including the current attempt. */
  readonly attempts: number;
}

/** Outcome of an attempt to deliver a mail. */
export type MailOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'given-up' };

const FORGOTTEN = { text_body: '', html_body: '' };

/** Returns the end of a claim that starts now. If the claiming process dies, other processes take the mail afterwards. */
const claimedUntil = (now: number): Date => new Date(now + MAIL_CLAIM_MS);

/** Claims due mails that no other process has claimed, longest-waiting first. */
export const claimMails = async (db: Db, now: number, most: number): Promise<ClaimedMail[]> => {
  const rows = await db
    .updateTable('mail_outbox')
    .set((mail) => ({ attempts: mail('attempts', '+', 1), next_try_at: claimedUntil(now) }))
    .where('id', 'in', (mail) =>
      mail
        .selectFrom('mail_outbox')
        .select('id')
        .where('sent_at', 'is', null)
        .where('given_up_at', 'is', null)
        .where('next_try_at', '<=', new Date(now))
        .orderBy('next_try_at')
        .limit(most)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'recipient', 'subject', 'text_body', 'html_body', 'created_at', 'attempts'])
    .execute();
  return rows.map((row) => ({
    id: row.id,
    recipient: row.recipient,
    subject: row.subject,
    text: row.text_body,
    html: row.html_body,
    writtenAt: row.created_at,
    attempts: row.attempts,
  }));
};

/** Extends the claims on mails that take longer to send than a claim lasts. */
export const renewClaims = async (db: Db, ids: readonly string[], now: number): Promise<void> => {
  if (ids.length === 0) return;
  await db
    .updateTable('mail_outbox')
    .set({ next_try_at: claimedUntil(now) })
    .where('id', 'in', ids)
    .where('sent_at', 'is', null)
    .where('given_up_at', 'is', null)
    .execute();
};

export const markSent = async (db: Db, ids: readonly string[], now: number): Promise<void> => {
  if (ids.length === 0) return;
  const done = { sent_at: new Date(now), ...FORGOTTEN };
  await db.updateTable('mail_outbox').set(done).where('id', 'in', ids).execute();
};

/** Writes the outcome of a failed attempt, unless another process has claimed the mail since. */
export const markUnsent = async (
  db: Db,
  { id, attempts }: ClaimedMail,
  outcome: Exclude<MailOutcome, { kind: 'sent' }>,
  now: number,
): Promise<void> => {
  await db
    .updateTable('mail_outbox')
    .set(
      outcome.kind === 'retry' ? { next_try_at: new Date(outcome.at) } : { given_up_at: new Date(now), ...FORGOTTEN },
    )
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .execute();
};
