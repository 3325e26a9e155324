// Puts a mail into the outbox, in the transaction of what it is about: neither is there alone, and no request waits for a mail
// server.
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

export interface Mail {
  /** One address, normalized. */
  readonly recipient: string;
  readonly subject: string;
  /** ASCII, so that it travels as it is: links stay whole on their lines. */
  readonly text: string;
  readonly html: string;
}

export const queueMail = async (trx: Transaction<Schema>, mail: Mail, now: number): Promise<void> => {
  await trx
    .insertInto('mail_outbox')
    .values({
      recipient: mail.recipient,
      subject: mail.subject,
      text_body: mail.text,
      html_body: mail.html,
      created_at: new Date(now),
      next_try_at: new Date(now),
    })
    .execute();
};
