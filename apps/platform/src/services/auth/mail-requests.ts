// Mails that somebody asks for by an address: noted at once, whoever's it is, and sent later. So neither the answer nor the time it
// takes tells whether there is such an account.
import { isAddress, normalizeAddress } from '@tunnel/core';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { queueMail } from '../mail/mail-template.ts';
import { resetMail, verificationMail } from '../mail/mails.ts';
import { countStrangersMail } from '../mail/recipient-quota.ts';
import type { ServiceContext } from '../service-context.ts';
import { giveMailToken, type MailTokenKind } from './mail-tokens.ts';

/**
 * One statement, the same for every address. What is no address is nobody's. While too many wait, nothing is noted: the answer is
 * the same then too. false: it was not noted.
 */
export const requestMail = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  typed: string,
  kind: MailTokenKind,
): Promise<boolean> => {
  const email = normalizeAddress(typed);
  if (!isAddress(email)) return false;
  const { numAffectedRows } = await sql`
    insert into mail_requests (email, kind, at)
    select ${email}, ${kind}, ${new Date(clock.now())}::timestamptz
    where (select count(*) from mail_requests) < ${LIMITS.MAIL_REQUESTS_MAX}
  `.execute(db);
  return numAffectedRows === 1n;
};

export interface MailRequestSettings {
  readonly publicUrl: string;
  readonly now: number;
}

interface RequestRow {
  readonly id: number;
  readonly email: string;
  readonly kind: MailTokenKind;
}

/** Deals with those that wait longest. How many they were, and how many mails they became. */
export const sendRequestedMails = (
  db: Db,
  settings: MailRequestSettings,
): Promise<{ readonly taken: number; readonly queued: number }> =>
  db.transaction().execute(async (trx) => {
    // Another platform passes over those that this one holds.
    const { rows } = await sql<RequestRow>`
      delete from mail_requests where id in (
        select id from mail_requests order by id limit ${LIMITS.MAIL_REQUESTS_BATCH} for update skip locked
      ) returning id, email, kind
    `.execute(trx);
    let queued = 0;
    // Everybody counts recipients in this order, so that nobody waits in a circle.
    for (const { email, kind } of rows.toSorted(byRecipient))
      if (await queueLink(trx, email, kind, settings)) queued += 1;
    return { taken: rows.length, queued };
  });

const byRecipient = (a: RequestRow, b: RequestRow): number => {
  if (a.email === b.email) return a.id - b.id;
  return a.email < b.email ? -1 : 1;
};

const MAIL_OF = { verify: verificationMail, reset: resetMail };

/** To an account with a password; the link that proves an address, only while it is not proven. */
const queueLink = async (
  trx: Transaction<Schema>,
  email: string,
  kind: MailTokenKind,
  { publicUrl, now }: MailRequestSettings,
): Promise<boolean> => {
  const user = await trx
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .where('auth_method', '=', 'password')
    .$if(kind === 'verify', (some) => some.where('email_verified_at', 'is', null))
    .executeTakeFirst();
  if (user === undefined || !(await countStrangersMail(trx, email, now))) return false;
  const token = await giveMailToken(trx, kind, user.id, now);
  await queueMail(trx, MAIL_OF[kind](publicUrl, email, token), now);
  return true;
};
