// The outbox as its sender sees it: mails are claimed for a while, then marked as sent, as to be tried again, or as given up.
// Several platform processes may do this at once. What a mail said is forgotten when it is done with: its link is a secret.
import type { Db } from '../db/database.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import type { WaitingMail } from './mail-transport.ts';

export interface ClaimedMail extends WaitingMail {
  /** This one included. */
  readonly attempts: number;
}

const FORGOTTEN = { text_body: '', html_body: '' };

/** Those that are due and that nobody else holds, the one that waits longest first. */
export const claimMails = async (db: Db, now: number): Promise<ClaimedMail[]> => {
  const rows = await db
    .updateTable('mail_outbox')
    .set((mail) => ({
      attempts: mail('attempts', '+', 1),
      // A process that dies meanwhile leaves it to the others.
      next_try_at: new Date(now + PLATFORM_BOUNDS.MAIL_CLAIM_MS),
    }))
    .where('id', 'in', (mail) =>
      mail
        .selectFrom('mail_outbox')
        .select('id')
        .where('sent_at', 'is', null)
        .where('given_up_at', 'is', null)
        .where('next_try_at', '<=', new Date(now))
        .orderBy('next_try_at')
        .limit(PLATFORM_BOUNDS.MAIL_BATCH)
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

export const markSent = async (db: Db, { id }: ClaimedMail, now: number): Promise<void> => {
  const done = { sent_at: new Date(now), ...FORGOTTEN };
  await db.updateTable('mail_outbox').set(done).where('id', '=', id).execute();
};

/** Not if somebody else has claimed it since: then it is theirs. */
export const markRetry = async (db: Db, { id, attempts }: ClaimedMail, at: number): Promise<void> => {
  await db
    .updateTable('mail_outbox')
    .set({ next_try_at: new Date(at) })
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .execute();
};

export const markGivenUp = async (db: Db, { id, attempts }: ClaimedMail, now: number): Promise<void> => {
  await db
    .updateTable('mail_outbox')
    .set({ given_up_at: new Date(now), ...FORGOTTEN })
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .execute();
};
