// Account operations for operators: invite, create an account, send a password link, delete an account. Mails wait in the outbox for the
// platform to send them. Links are also returned, for operators without a mail server.
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { checkNewPassword } from '../auth/own-password.ts';
import type { PasswordHasher } from '../auth/password-hasher.ts';
import { queueMail } from '../mail/mail-template.ts';
import { invitationLink, invitationMail, resetLink, resetMail, welcomeMail } from '../mail/mails.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';
import { lockAccountByEmail } from './account-standing.ts';
import { deleteAccount } from './delete-account.ts';
import { giveInvite, INVITE_MS } from './invites.ts';
import { giveMailToken, RESET_TOKEN_MS } from './mail-tokens.ts';
import { insertUser, newAddress } from './new-user.ts';

/** Operator context plus the platform's public URL, which is the base of the links in mails. */
type Context = OperatorContext & { readonly publicUrl: string };

export interface MailedLink {
  /** Recipient's address, normalized as in the database. */
  readonly email: string;
  readonly link: string;
  readonly expiresAt: Date;
}

/** Invites an address to sign up. Only the newest link for the address works. Throws ACCOUNT_EXISTS. */
export const invite = async (
  { db, clock, publicUrl }: Context,
  actor: OperatorActor,
  typed: string,
): Promise<MailedLink> => {
  const email = newAddress(typed, 'email');
  const now = clock.now();
  const token = await db.transaction().execute(async (trx) => {
    const taken = await trx.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
    if (taken !== undefined) throw new Fault('ACCOUNT_EXISTS');
    const made = await giveInvite(trx, email, now);
    await queueMail(trx, invitationMail(publicUrl, email, made), { userId: null, now });
    await writeAudit(trx, { actor: actorName(actor), action: 'user.invited' });
    return made;
  });
  return { email, link: invitationLink(publicUrl, token), expiresAt: new Date(now + INVITE_MS) };
};

export interface CreatedUser {
  readonly id: string;
  readonly email: string;
  /** Link to choose a password, or null if the account was created with a password. */
  readonly link: string | null;
}

/** Creates an account with an address that counts as verified. Without a password, the owner gets a link to choose a password. */
export const createUser = async (
  { db, clock, publicUrl, passwords }: Context & { readonly passwords: Pick<PasswordHasher, 'hash'> },
  actor: OperatorActor,
  { email: typed, password }: { readonly email: string; readonly password: string | null },
): Promise<CreatedUser> => {
  const email = newAddress(typed, 'email');
  if (password !== null) checkNewPassword(password, 'password');
  const password_hash = password === null ? null : await passwords.hash(password);
  const now = clock.now();
  return db.transaction().execute(async (trx) => {
    const at = new Date(now);
    const id = await insertUser(trx, {
      email,
      password_hash,
      display_name: null,
      created_at: at,
      email_verified_at: at,
    });
    await trx.deleteFrom('invites').where('email', '=', email).execute();
    await writeAudit(trx, { actor: actorName(actor), action: 'user.created', userId: id });
    if (password !== null) return { id, email, link: null };
    const token = await giveMailToken(trx, { kind: 'reset', userId: id, now, lifeMs: INVITE_MS });
    await queueMail(trx, welcomeMail(publicUrl, email, token), { userId: id, now });
    return { id, email, link: resetLink(publicUrl, token) };
  });
};

/** Sends a link to choose a new password, as the owner of the account could request. The old password works until the link is used. */
export const sendPasswordReset = async (
  { db, clock, publicUrl }: Context,
  actor: OperatorActor,
  typed: string,
): Promise<MailedLink> => {
  const now = clock.now();
  return db.transaction().execute(async (trx) => {
    const { id: userId, email } = await lockAccountByEmail(trx, typed);
    await refuseExternal(trx, userId);
    const token = await giveMailToken(trx, { kind: 'reset', userId, now });
    await queueMail(trx, resetMail(publicUrl, email, token), { userId, now });
    await writeAudit(trx, { actor: actorName(actor), action: 'password.reset-sent', userId });
    return { email, link: resetLink(publicUrl, token), expiresAt: new Date(now + RESET_TOKEN_MS) };
  });
};

const refuseExternal = async (trx: Transaction<Schema>, userId: string): Promise<void> => {
  const { auth_method: method } = await trx
    .selectFrom('users')
    .select('auth_method')
    .where('id', '=', userId)
    .executeTakeFirstOrThrow();
  if (method !== 'password') throw new Fault('ACCOUNT_EXTERNAL', { method });
};

/**
 * Deletes an account as its owner would, without the password. Throws USER_UNKNOWN if no account has the address, for example because the
 * account was deleted already.
 */
export const deleteUser = async (context: OperatorContext, actor: OperatorActor, email: string): Promise<void> => {
  const { id: userId } = await context.db.transaction().execute((trx) => lockAccountByEmail(trx, email));
  await deleteAccount(context, { userId, actor });
};
