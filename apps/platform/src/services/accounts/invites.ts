// Invitations to sign up. An invitation is for one address and one account, and is valid for seven days. The token is stored as a hash,
// and the row is deleted on use. The invitation for the first account has no address: see first-account.ts.
import type { SignUpTerms } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import type { AuthContext } from '../auth/auth-context.ts';

/**
 * Lifetime of an invitation, and of the link to choose the first password of an account created by an operator.
 * @limit accounts: Invitation, lifetime | the link has expired
 */
export const INVITE_MS = 7 * 24 * 60 * 60_000;

/** Creates an invitation for an address and returns its token. Only the newest invitation is valid: links sent earlier stop working. */
export const giveInvite = async (trx: Transaction<Schema>, email: string, now: number): Promise<string> => {
  const token = randomToken(32);
  await trx.deleteFrom('invites').where('email', '=', email).execute();
  await trx
    .insertInto('invites')
    .values({
      token_hash: sha256Hex(token),
      email,
      created_at: new Date(now),
      expires_at: new Date(now + INVITE_MS),
    })
    .execute();
  return token;
};

/** SQL condition: no account exists. Rows of deleted accounts do not count; they stay in the table without personal data. */
export const NO_ACCOUNT_YET = sql<boolean>`not exists (select from users where deleted_at is null)`;

/**
 * SQL condition for a valid invitation. An invitation with an address is valid until it expires; the invitation without an address, as
 * long as no account exists.
 */
const isValid = (now: number): RawBuilder<boolean> =>
  sql<boolean>`(expires_at > ${new Date(now)} or (email is null and ${NO_ACCOUNT_YET}))`;

/** Invitation that can be used. If `email` is null, the invitation is for any address. */
export interface ValidInvite {
  readonly email: string | null;
}

/** Finds a valid invitation without using it up. Returns null if the invitation is unknown, was used, or has expired. */
const findInvite = async (db: Db, token: string, now: number): Promise<ValidInvite | null> => {
  const row = await db
    .selectFrom('invites')
    .select('email')
    .where('token_hash', '=', sha256Hex(token))
    .where(isValid(now))
    .executeTakeFirst();
  return row ?? null;
};

/**
 * Uses up an invitation. Returns null if the invitation is invalid or for another address. Of two concurrent calls, the second waits for
 * the first and finds the invitation used.
 */
export const takeInvite = async (
  trx: Transaction<Schema>,
  { token, email, now }: { readonly token: string; readonly email: string; readonly now: number },
): Promise<ValidInvite | null> => {
  const taken = await trx
    .deleteFrom('invites')
    .where('token_hash', '=', sha256Hex(token))
    .where((invite) => invite.or([invite('email', '=', email), invite('email', 'is', null)]))
    .where(isValid(now))
    .returning('email')
    .executeTakeFirst();
  return taken ?? null;
};

/**
 * Returns the sign-up mode of the server, and the address of the given invitation. Showing the address is safe: a person with the link
 * has read the mail.
 */
export const showSignUpTerms = async (
  { db, clock, settings }: Pick<AuthContext, 'db' | 'clock' | 'settings'>,
  token: string | undefined,
): Promise<SignUpTerms> => {
  const { sign_up } = settings;
  const invite = token === undefined || sign_up === 'closed' ? null : await findInvite(db, token, clock.now());
  return { sign_up, invite_valid: invite !== null, invited_email: invite?.email ?? null };
};

/**
 * Throws if the address is not allowed to sign up. This is an early check, to save the cost of a password hash; `takeInvite` decides.
 * Must come before the check whether the address is taken, so that a person who cannot sign up learns nothing about other accounts.
 */
export const checkSignUp = async (
  { db, clock, settings }: Pick<AuthContext, 'db' | 'clock' | 'settings'>,
  { email, invite: token }: { readonly email: string; readonly invite?: string | undefined },
): Promise<void> => {
  if (settings.sign_up === 'open') return;
  if (settings.sign_up === 'closed') throw new Fault('SIGN_UP_CLOSED');
  const invite = token === undefined ? null : await findInvite(db, token, clock.now());
  const isFor = invite !== null && (invite.email === null || invite.email === normalizeAddress(email));
  if (!isFor) throw new Fault('SIGN_UP_BY_INVITATION');
};
