// Counts the mails per address that strangers can cause. The counts are in the database, so that they survive restarts and apply to all
// platform processes.

import { sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { takeMail } from './mail-quota.rules.ts';

/**
 * Maximum number of mails per recipient and hour that strangers can cause: verification, resend and reset mails together.
 * @limit accounts: Verification and reset emails per address and hour | no further email is sent; the response is the same
 */
export const STRANGERS_MAILS_PER_HOUR = 3;
/**
 * Maximum number of mails per recipient and day that strangers can cause.
 * @limit accounts: Verification and reset emails per address and day | no further email is sent; the response is the same
 */
const STRANGERS_MAILS_PER_DAY = 10;

const RULES = { perHour: STRANGERS_MAILS_PER_HOUR, perDay: STRANGERS_MAILS_PER_DAY };

/**
 * Counts a verification or reset mail to a recipient. Returns false if the mail exceeds the limit and must not be queued. Mails about
 * billing are not counted, because strangers cannot cause them.
 */
export const countStrangersMail = async (
  trx: Transaction<Schema>,
  recipient: string,
  now: number,
): Promise<boolean> => {
  const recipient_hash = sha256Hex(recipient);
  // The upsert locks the recipient's row, so that concurrent mails are counted one after the other.
  const { sent_at } = await trx
    .insertInto('mail_quotas')
    .values({ recipient_hash, last_at: new Date(now) })
    .onConflict((conflict) => conflict.column('recipient_hash').doUpdateSet({ recipient_hash }))
    .returning('sent_at')
    .executeTakeFirstOrThrow();
  const times = sent_at.split(' ').filter((time) => time !== '');
  const taken = takeMail(times.map(Number), now, RULES);
  if (taken === null) return false;
  await trx
    .updateTable('mail_quotas')
    .set({ sent_at: taken.join(' '), last_at: new Date(now) })
    .where('recipient_hash', '=', recipient_hash)
    .execute();
  return true;
};
