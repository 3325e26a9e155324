// Mails that somebody asks for by an address: noted at once, whoever's it is, and sent later. So neither the answer nor the time it
// takes tells whether there is such an account.
import { isAddress, normalizeAddress } from '@tunnel/rules/sign-in';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { queueMail } from '../mail/mail-template.ts';
import { newAddressMail, resetMail, verificationMail } from '../mail/mails.ts';
import { countStrangersMail } from '../mail/recipient-quota.ts';
import type { ServiceContext } from '../shared/service-context.ts';
import { giveMailToken, type MailTokenKind } from './mail-tokens.ts';

/** Requests for such mails that wait; more are answered and forgotten. */
export const MAIL_REQUESTS_MAX = 10_000;
/** Requests that one run of the job takes up. */
export const MAIL_REQUESTS_BATCH = 100;

export interface RequestedMail {
  readonly typed: string;
  readonly kind: MailTokenKind;
  /** Of a change: whose address it shall become, and the epoch of the password that was shown for it. */
  readonly change?: { readonly userId: string; readonly epoch: number };
}

/**
 * One statement, the same for every address. What is no address is nobody's. While too many wait, nothing is noted: the answer is
 * the same then too. false: it was not noted.
 */
export const requestMail = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { typed, kind, change }: RequestedMail,
): Promise<boolean> => {
  const email = normalizeAddress(typed);
  if (!isAddress(email)) return false;
  const { numAffectedRows } = await sql`
    insert into mail_requests (email, kind, at, user_id, epoch)
    select ${email}, ${kind}, ${new Date(clock.now())}::timestamptz, ${change?.userId ?? null}::uuid, ${change?.epoch ?? null}::integer
    where (select count(*) from mail_requests) < ${MAIL_REQUESTS_MAX}
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
  readonly user_id: string | null;
  readonly epoch: number | null;
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
        select id from mail_requests order by id limit ${MAIL_REQUESTS_BATCH} for update skip locked
      ) returning id, email, kind, user_id, epoch
    `.execute(trx);
    let queued = 0;
    // Everybody counts recipients in this order, so that nobody waits in a circle.
    for (const request of rows.toSorted(byRecipient)) if (await queueLink(trx, request, settings)) queued += 1;
    return { taken: rows.length, queued };
  });

const byRecipient = (a: RequestRow, b: RequestRow): number => {
  if (a.email === b.email) return a.id - b.id;
  return a.email < b.email ? -1 : 1;
};

const MAIL_OF = { verify: verificationMail, reset: resetMail, change: newAddressMail };

/** To whom it belongs, within what an address may get of strangers. */
const queueLink = async (
  trx: Transaction<Schema>,
  request: RequestRow,
  { publicUrl, now }: MailRequestSettings,
): Promise<boolean> => {
  const { email, kind, epoch } = request;
  const userId = await (kind === 'change' ? ownerToBe(trx, request) : ownerOf(trx, request));
  if (userId === null || !(await countStrangersMail(trx, email, now))) return false;
  const token = await giveMailToken(trx, {
    kind,
    userId,
    now,
    ...(epoch === null ? {} : { change: { newEmail: email, epoch } }),
  });
  await queueMail(trx, MAIL_OF[kind](publicUrl, email, token), { userId, now });
  return true;
};

/** Of an account with a password; the link that proves an address, only while it is not proven. */
const ownerOf = async (trx: Transaction<Schema>, { email, kind }: RequestRow): Promise<string | null> => {
  const user = await trx
    .selectFrom('users')
    .select('id')
    .where('email', '=', email)
    .where('auth_method', '=', 'password')
    .$if(kind === 'verify', (some) => some.where('email_verified_at', 'is', null))
    .executeTakeFirst();
  return user?.id ?? null;
};

/** null: somebody has the address, the account that wants it is gone, or its password is another one by now. */
const ownerToBe = async (trx: Transaction<Schema>, { email, user_id, epoch }: RequestRow): Promise<string | null> => {
  const user = await trx
    .selectFrom('users')
    .select('id')
    .where('id', '=', user_id)
    .where('epoch', '=', epoch)
    .where('deleted_at', 'is', null)
    .where((row) => row.not(row.exists(row.selectFrom('users as other').select('id').where('other.email', '=', email))))
    .executeTakeFirst();
  return user?.id ?? null;
};
