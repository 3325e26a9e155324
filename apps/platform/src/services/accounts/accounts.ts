// Account functions that need no sign-in: sign up, verify the address, reset the password.
import type { EmailOnly, MessageBody, PasswordReset, Registered, Registration } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import type { AuthContext } from '../auth/auth-context.ts';
import { checkNewPassword } from '../auth/own-password.ts';
import { endFamilies } from '../auth/refresh-tokens.ts';
import { queueMail } from '../mail/mail-template.ts';
import { verificationMail } from '../mail/mails.ts';
import { countStrangersMail } from '../mail/recipient-quota.ts';
import { writeAudit } from '../shared/audit.ts';
import { setAddress } from './change-email.ts';
import { checkSignUp, takeInvite } from './invites.ts';
import { requestMail } from './mail-requests.ts';
import { findMailToken, giveMailToken, type MailTokenKind, takeMailToken } from './mail-tokens.ts';
import { insertUser, newAddress } from './new-user.ts';

type RegisterContext = Pick<AuthContext, 'db' | 'clock' | 'settings' | 'passwords' | 'wakeMailer' | 'firstAccountMade'>;

export interface NewAccount {
  readonly userId: string;
  readonly body: Registered;
}

/**
 * Creates an account and queues the mail to verify its address. Signing in is possible only after the verification. An invitation for the
 * address counts as verification.
 */
export const register = async (context: RegisterContext, input: Registration): Promise<NewAccount> => {
  const { db, clock, passwords, wakeMailer } = context;
  const email = newAddress(input.email, 'email');
  checkNewPassword(input.password, 'password');
  await checkSignUp(context, { email, invite: input.invite });
  // Early check whether the address is taken, to save the cost of a password hash. The unique index decides.
  const taken = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  if (taken !== undefined) throw new Fault('ACCOUNT_EXISTS');
  const password_hash = await passwords.hash(input.password);
  const now = clock.now();
  const { userId, isFirst, isProven } = await db.transaction().execute(async (trx) => {
    const invite = input.invite === undefined ? null : await takeInvite(trx, { token: input.invite, email, now });
    if (invite === null && context.settings.sign_up !== 'open') throw new Fault('SIGN_UP_BY_INVITATION');
    const proven = invite !== null && invite.email !== null;
    const id = await insertUser(trx, {
      email,
      password_hash,
      display_name: input.display_name ?? null,
      created_at: new Date(now),
      email_verified_at: proven ? new Date(now) : null,
    });
    await writeAudit(trx, { actor: `user:${id}`, action: 'user.registered', userId: id });
    if (!proven) await sendVerification(context, trx, { userId: id, email, now });
    return { userId: id, isFirst: invite?.email === null, isProven: proven };
  });
  wakeMailer();
  if (isFirst) context.firstAccountMade();
  if (isProven) return { userId, body: { message: 'account created: you can sign in now', email_verified: true } };
  return { userId, body: { message: 'account created: open the link in the email we sent you' } };
};

const sendVerification = async (
  { settings }: RegisterContext,
  trx: Transaction<Schema>,
  { userId, email, now }: { readonly userId: string; readonly email: string; readonly now: number },
): Promise<void> => {
  // If the address has received too many mails already, the account is created without the mail. The user can request the link later.
  if (!(await countStrangersMail(trx, email, now))) return;
  const token = await giveMailToken(trx, { kind: 'verify', userId, now });
  await queueMail(trx, verificationMail(settings.public_url, email, token), { userId, now });
};

const OF_ADDRESSES: readonly MailTokenKind[] = ['verify', 'change'];

export interface ProvenEmail extends MessageBody {
  /** Verified address, which the sign-in page fills in. */
  readonly email: string;
  readonly userId: string;
  /** True if the verified address replaces the account's previous address. */
  readonly isChange: boolean;
}

/**
 * Verifies an address: a user with the token has read the mail sent there. If the token is for a change of address, the account gets the
 * new address.
 */
export const verifyEmail = async (
  { db, clock, users, settings, wakeMailer }: Pick<AuthContext, 'db' | 'clock' | 'users' | 'settings' | 'wakeMailer'>,
  token: string,
): Promise<ProvenEmail> => {
  const now = clock.now();
  const { userId, email, newEmail } = await db.transaction().execute(async (trx) => {
    const taken = await takeMailToken(trx, { token, kinds: OF_ADDRESSES, now });
    if (taken === null) throw new Fault('MAIL_TOKEN_INVALID');
    if (taken.newEmail !== null) {
      await setAddress(trx, { userId: taken.userId, email: taken.newEmail, publicUrl: settings.public_url, now });
      return { ...taken, email: taken.newEmail };
    }
    const user = await trx
      .updateTable('users')
      .set((row) => ({ email_verified_at: row.fn.coalesce('email_verified_at', row.val(new Date(now))) }))
      .where('id', '=', taken.userId)
      .returning('email')
      .executeTakeFirstOrThrow();
    await writeAudit(trx, { actor: `user:${taken.userId}`, action: 'user.verified', userId: taken.userId });
    return { ...taken, ...user };
  });
  users.forget(userId);
  if (newEmail === null) return { message: 'email verified: you can sign in now', userId, email, isChange: false };
  await readBillingSoon(db, userId);
  wakeMailer();
  return { message: 'email changed: sign in with the new address from now on', userId, email, isChange: true };
};

/**
 * Marks the account for the job that syncs accounts with the payment processor, so that the processor learns the new address soon. Runs
 * outside the transaction of the address change, because the change must not wait for transactions that store records of edges. Errors
 * are ignored: the next regular sync, at most an hour later, sends the address anyway.
 */
const readBillingSoon = async (db: Db, userId: string): Promise<void> => {
  const accounts = db.updateTable('billing_accounts').set({ synced_at: null }).where('user_id', '=', userId);
  await accounts.execute().catch(() => {});
};

/** Handles HEAD requests for a verification link: checks the token without using it up. Mail scanners open links before people do. */
export const canVerifyEmail = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  token: string,
): Promise<MessageBody> => {
  if ((await findMailToken(db, { token, kinds: OF_ADDRESSES, now: clock.now() })) === null) {
    throw new Fault('MAIL_TOKEN_INVALID');
  }
  return { message: 'the link is valid' };
};

type MailContext = Pick<AuthContext, 'db' | 'clock'>;

export const RESEND_ANSWER: MessageBody = {
  message: 'if the address belongs to an unverified account, we have sent a new link',
};

/**
 * Sends the verification mail again if an unverified account has the address. The response does not reveal whether such an account
 * exists.
 */
export const resendVerification = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, { typed: email, kind: 'verify' });
  return RESEND_ANSWER;
};

export const FORGOT_ANSWER: MessageBody = {
  message: 'if the address belongs to an account, we have sent a link to choose a new password',
};

/** Sends a link to choose a new password if an account has the address. The response does not reveal whether such an account exists. */
export const forgotPassword = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, { typed: email, kind: 'reset' });
  return FORGOT_ANSWER;
};

type ResetContext = Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users'>;

/**
 * Sets a new password with the token of a password reset mail. All sessions and access tokens of the account end, and the address counts
 * as verified.
 */
export const resetPassword = async (
  context: ResetContext,
  { token, password }: PasswordReset,
): Promise<MessageBody> => {
  const { db, clock, passwords, users } = context;
  checkNewPassword(password, 'password');
  // Early check of the token, to save the cost of a password hash. The check in the transaction decides.
  const isGood = (await findMailToken(db, { token, kinds: ['reset'], now: clock.now() })) !== null;
  if (!isGood) throw new Fault('MAIL_TOKEN_INVALID');
  const password_hash = await passwords.hash(password);
  const now = clock.now();
  const userId = await db.transaction().execute(async (trx) => {
    const taken = await takeMailToken(trx, { token, kinds: ['reset'], now });
    if (taken === null) throw new Fault('MAIL_TOKEN_INVALID');
    const owner = taken.userId;
    await trx
      .updateTable('users')
      .set((user) => ({
        password_hash,
        epoch: user('epoch', '+', 1),
        email_verified_at: user.fn.coalesce('email_verified_at', user.val(new Date(now))),
      }))
      .where('id', '=', owner)
      .execute();
    await endFamilies(trx, owner, now);
    await writeAudit(trx, { actor: `user:${owner}`, action: 'password.reset', userId: owner });
    return owner;
  });
  users.forget(userId);
  return { message: 'password changed: sign in with the new password' };
};
