// Mails requested for an address without signing in. The request is stored immediately, whether or not an account has the address, and
// the mail is sent later. So neither the response nor its timing reveals whether an account exists.
import { isAddress, normalizeAddress } from '@tunnel/rules/sign-in';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { queueMail } from '../mail/mail-template.ts';
import { newAddressMail, resetMail, verificationMail } from '../mail/mails.ts';
import { countStrangersMail } from '../mail/recipient-quota.ts';
import type { ServiceContext } from '../shared/service-context.ts';
import { giveMailToken, type MailTokenKind } from './mail-tokens.ts';

/** Maximum number of queued mail requests. Further requests get the same response and are dropped. */
export const MAIL_REQUESTS_MAX = 10_000;
/** Maximum number of mail requests processed in one run of the job. */
export const MAIL_REQUESTS_BATCH = 100;

export interface RequestedMail {
  readonly typed: string;
  readonly kind: MailTokenKind;
  /** Only for a change of address: the account that wants the new address, and the account's epoch when the password was checked. */
  readonly change?: { readonly userId: string; readonly epoch: number };
}

/**
 * Stores a mail request, with a single statement that is the same for every address. Returns false if the request was not stored, because
 * the text is not an address or the queue is full. The caller's response must be the same in both cases.
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

/** Processes the oldest mail requests. Returns the number of processed requests and of queued mails. */
export const sendRequestedMails = (
  db: Db,
  settings: MailRequestSettings,
): Promise<{ readonly taken: number; readonly queued: number }> =>
  db.transaction().execute(async (trx) => {
    // Mail requests locked by another platform process are skipped.
    const { rows } = await sql<RequestRow>`
      delete from mail_requests where id in (
        select id from mail_requests order by id limit ${MAIL_REQUESTS_BATCH} for update skip locked
      ) returning id, email, kind, user_id, epoch
    `.execute(trx);
    let queued = 0;
    // Recipients are counted in the same order everywhere, to avoid deadlocks.
    for (const request of rows.toSorted(byRecipient)) if (await queueLink(trx, request, settings)) queued += 1;
    return { taken: rows.length, queued };
  });

const byRecipient = (a: RequestRow, b: RequestRow): number => {
  if (a.email === b.email) return a.id - b.id;
  return a.email < b.email ? -1 : 1;
};

const MAIL_OF = { verify: verificationMail, reset: resetMail, change: newAddressMail };

/**
 * Queues the mail with the link if an account matches the request and the address has not reached its limit of mails caused by strangers.
 * Returns true if a mail was queued.
 */
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

/**
 * Returns the id of the account with the requested address and a password, or null. For a verification mail, the address must still be
 * unverified.
 */
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

/**
 * Returns the id of the account that wants the new address. Returns null if an account has the address already, the requesting account is
 * gone, or its password has changed since the request.
 */
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
