// An account comes to be, proves its address, and gets a new password: what a person does before logging in.
import type { EmailOnly, MessageBody, PasswordReset, Registration } from '@tunnel/contract';
import { isAddress, normalizeAddress, problemOfPassword } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit.ts';
import { queueMail } from '../mail/mail-template.ts';
import { verificationMail } from '../mail/mails.ts';
import { countStrangersMail } from '../mail/recipient-quota.ts';
import type { AuthContext } from './auth-context.ts';
import { requestMail } from './mail-requests.ts';
import { giveMailToken, isMailTokenGood, takeMailToken } from './mail-tokens.ts';
import { endFamilies } from './refresh-tokens.ts';

/** Of [platform.plans]; every account begins with it. */
const FIRST_PLAN = 'free';

type RegisterContext = Pick<AuthContext, 'db' | 'clock' | 'settings' | 'passwords' | 'mailWaits'>;

/** Makes an account, and sends the mail that proves its address. Nobody can log in before that. */
export const register = async (context: RegisterContext, input: Registration): Promise<MessageBody> => {
  const { db, clock, settings, passwords, mailWaits } = context;
  const email = newAddress(input.email);
  checkNewPassword(input.password);
  // A glance before the work of a hash; the index decides.
  const taken = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  if (taken !== undefined) throw new Fault('ACCOUNT_EXISTS');
  const password_hash = await passwords.hash(input.password);
  const now = clock.now();
  await db.transaction().execute(async (trx) => {
    const user = await trx
      .insertInto('users')
      .values({
        email,
        display_name: input.display_name ?? null,
        password_hash,
        plan: FIRST_PLAN,
        created_at: new Date(now),
      })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (user === undefined) throw new Fault('ACCOUNT_EXISTS');
    // An address that got too many mails already has its account all the same, and may ask for the link later.
    if (await countStrangersMail(trx, email, now)) {
      const token = await giveMailToken(trx, 'verify', user.id, now);
      await queueMail(trx, verificationMail(settings.public_url, email, token), now);
    }
    await writeAudit(trx, { actor: `user:${user.id}`, action: 'user.registered', userId: user.id });
  });
  mailWaits();
  return { message: 'registered: open the link in the mail that we sent you' };
};

/** Proves an address: whoever has the token has read the mail. */
export const verifyEmail = async (
  { db, clock, users }: Pick<AuthContext, 'db' | 'clock' | 'users'>,
  token: string,
): Promise<MessageBody> => {
  const now = clock.now();
  const userId = await db.transaction().execute(async (trx) => {
    const owner = await takeMailToken(trx, 'verify', token, now);
    if (owner === null) throw new Fault('MAIL_TOKEN_INVALID');
    await trx
      .updateTable('users')
      .set((user) => ({ email_verified_at: user.fn.coalesce('email_verified_at', user.val(new Date(now))) }))
      .where('id', '=', owner)
      .execute();
    await writeAudit(trx, { actor: `user:${owner}`, action: 'user.verified', userId: owner });
    return owner;
  });
  users.forget(userId);
  return { message: 'the e-mail address is verified: you can log in now' };
};

/** What a HEAD asks: programs look at links before people do, and must not use them up. */
export const canVerifyEmail = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  token: string,
): Promise<MessageBody> => {
  if (!(await isMailTokenGood(db, 'verify', token, clock.now()))) throw new Fault('MAIL_TOKEN_INVALID');
  return { message: 'the link is good' };
};

type MailContext = Pick<AuthContext, 'db' | 'clock'>;

export const RESEND_ANSWER: MessageBody = {
  message: 'if the address belongs to an account that is not verified yet, a new link is on its way',
};

/** Sends the mail that proves an address once more, if there is an account that waits for it. The answer does not tell. */
export const resendVerification = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, email, 'verify');
  return RESEND_ANSWER;
};

export const FORGOT_ANSWER: MessageBody = {
  message: 'if the address belongs to an account, a link to choose a new password is on its way',
};

/** Sends a link to choose a new password, if there is an account to send it to. The answer does not tell. */
export const forgotPassword = async (context: MailContext, { email }: EmailOnly): Promise<MessageBody> => {
  await requestMail(context, email, 'reset');
  return FORGOT_ANSWER;
};

type ResetContext = Pick<AuthContext, 'db' | 'clock' | 'passwords' | 'users'>;

/** Sets a new password with the token of a mail. It ends all sessions and access tokens, and proves the address. */
export const resetPassword = async (
  context: ResetContext,
  { token, password }: PasswordReset,
): Promise<MessageBody> => {
  const { db, clock, passwords, users } = context;
  checkNewPassword(password);
  // A glance before the work of a hash; the transaction decides.
  if (!(await isMailTokenGood(db, 'reset', token, clock.now()))) throw new Fault('MAIL_TOKEN_INVALID');
  const password_hash = await passwords.hash(password);
  const now = clock.now();
  const userId = await db.transaction().execute(async (trx) => {
    const owner = await takeMailToken(trx, 'reset', token, now);
    if (owner === null) throw new Fault('MAIL_TOKEN_INVALID');
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
  return { message: 'the password is changed: log in with the new one' };
};

/** Addresses and passwords that a person chose, refused with the name of the field and the rule. */
const newAddress = (email: string): string => {
  const address = normalizeAddress(email);
  if (!isAddress(address)) throw new Fault('API_BAD_REQUEST', { reason: 'email: must be an e-mail address' });
  return address;
};

const checkNewPassword = (password: string): void => {
  const problem = problemOfPassword(password);
  if (problem !== null) throw new Fault('API_BAD_REQUEST', { reason: `password: ${problem}` });
};
