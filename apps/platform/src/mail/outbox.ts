// The outbox as its sender sees it: mails are claimed for a while, then marked as sent, as to be tried again, or as given up.
// Several platform processes may do this at once. What a mail said is forgotten when it is done with: its link is a secret.
import type { Db } from '../db/database.ts';
import type { WaitingMail } from './mail-transport.ts';

/** A mail that is being sent is not taken by another process for so long; claimed again while it is. What a process that died had waits for this. */
export const MAIL_CLAIM_MS = 10_000;

export interface ClaimedMail extends WaitingMail {
  /** This one included. */
  readonly attempts: number;
}

/** What became of a try. */
export type MailOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'given-up' };

const FORGOTTEN = { text_body: '', html_body: '' };

/** A process that dies meanwhile leaves it to the others. */
const claimedUntil = (now: number): Date => new Date(now + MAIL_CLAIM_MS);

/** Those that are due and that nobody else holds, the one that waits longest first. */
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

/** For those that take longer than a claim lasts. */
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

/** Not if somebody else has claimed it since: then it is theirs. */
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
