// An account comes to be, proves its address, and gets a new password: what a person does before logging in.
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
 * Makes an account, and sends the mail that proves its address. Nobody can log in before that; an invitation for that address has
 * proven it already.
 */
export const register = async (context: RegisterContext, input: Registration): Promise<NewAccount> => {
  const { db, clock, passwords, wakeMailer } = context;
  const email = newAddress(input.email, 'email');
  checkNewPassword(input.password, 'password');
  await checkSignUp(context, { email, invite: input.invite });
  // A glance before the work of a hash; the index decides.
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
  // An address that got too many mails already has its account all the same, and may ask for the link later.
  if (!(await countStrangersMail(trx, email, now))) return;
  const token = await giveMailToken(trx, { kind: 'verify', userId, now });
  await queueMail(trx, verificationMail(settings.public_url, email, token), { userId, now });
};

const OF_ADDRESSES: readonly MailTokenKind[] = ['verify', 'change'];

export interface ProvenEmail extends MessageBody {
  /** For the way on to the log-in. */
  readonly email: string;
  readonly userId: string;
  /** It is another one than before. */
  readonly isChange: boolean;
}

/** Proves an address: whoever has the token has read the mail. Of an account that wants another address, it has that one now. */
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
 * The payment processor shall write to the new address: the job that reads accounts there tells it. Apart from the change, which must
 * wait for nobody who stores records of edges; and never a failure, for an hour later it would be told anyway.
 */
const readBillingSoon = async (db: Db, userId: string): Promise<void> => {
  const accounts = db.updateTable('billing_accounts').set({ synced_at: null }).where('user_id', '=', userId);
  await accounts.execute().catch(() => {});
};

/** What a HEAD asks: programs look at links before people do, and must not use them up. */
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

/** Sends the mail that proves an address once more, if there is an account that waits for it. The answer does not tell. */
export const resendVerification = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, { typed: email, kind: 'verify' });
  return RESEND_ANSWER;
};

export const FORGOT_ANSWER: MessageBody = {
  message: 'if the address belongs to an account, we have sent a link to choose a new password',
};

/** Sends a link to choose a new password, if there is an account to send it to. The answer does not tell. */
export const forgotPassword = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, { typed: email, kind: 'reset' });
  return FORGOT_ANSWER;
};

type ResetContext = Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users'>;

/** Sets a new password with the token of a mail. It ends all sessions and access tokens, and proves the address. */
export const resetPassword = async (
  context: ResetContext,
  { token, password }: PasswordReset,
): Promise<MessageBody> => {
  const { db, clock, passwords, users } = context;
  checkNewPassword(password, 'password');
  // A glance before the work of a hash; the transaction decides.
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
