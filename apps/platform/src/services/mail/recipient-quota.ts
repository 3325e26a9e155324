// How many mails an address has got that strangers can cause: in the database, so that it holds over restarts and for all platforms.

import { sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { takeMail } from './mail-quota.rules.ts';

/**
 * Mails that strangers can cause (verification, resend, reset) to one recipient, together.
 * @limit accounts: Verification and reset emails per address and hour | no further email is sent; the response is the same
 */
export const STRANGERS_MAILS_PER_HOUR = 3;
/**
 * The same for a day.
 * @limit accounts: Verification and reset emails per address and day | no further email is sent; the response is the same
 */
const STRANGERS_MAILS_PER_DAY = 10;

const RULES = { perHour: STRANGERS_MAILS_PER_HOUR, perDay: STRANGERS_MAILS_PER_DAY };

/**
 * Counts one more mail to a recipient; false: it is one too many, and must not be queued. For verification and reset mails
 * together. Mails about money are no stranger's doing and are not counted.
 */
export const countStrangersMail = async (
  trx: Transaction<Schema>,
  recipient: string,
  now: number,
): Promise<boolean> => {
  const recipient_hash = sha256Hex(recipient);
  // Two mails to one recipient wait for each other here.
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
