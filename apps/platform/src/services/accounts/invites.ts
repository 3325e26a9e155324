// Invitations to sign up: each for one address, good for one account and seven days. Stored as a hash; the row is deleted when it is used. The invitation for
// the first account is one of them, without an address: see first-account.ts.
import type { SignUpTerms } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import type { AuthContext } from '../auth/auth-context.ts';

/**
 * Lifetime of an invitation, and of the link to choose the first password of an account that an operator made.
 * @limit accounts: Invitation, lifetime | the link has expired
 */
export const INVITE_MS = 7 * 24 * 60 * 60_000;

/** The newest counts: a link that was sent before does not work any more. */
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

/** Rows of deleted accounts stay, without anything of their owner. */
export const NO_ACCOUNT_YET = sql<boolean>`not exists (select from users where deleted_at is null)`;

/** An invitation for an address is valid until it expires; the one without an address as long as there is no account. */
const isValid = (now: number): RawBuilder<boolean> =>
  sql<boolean>`(expires_at > ${new Date(now)} or (email is null and ${NO_ACCOUNT_YET}))`;

/** An invitation that can be used. `email` null: for any address. */
export interface ValidInvite {
  readonly email: string | null;
}

/** Returns null if the invitation is unknown, was used, or has expired. Uses nothing up. */
const findInvite = async (db: Db, token: string, now: number): Promise<ValidInvite | null> => {
  const row = await db
    .selectFrom('invites')
    .select('email')
    .where('token_hash', '=', sha256Hex(token))
    .where(isValid(now))
    .executeTakeFirst();
  return row ?? null;
};

/** Uses an invitation up. Returns null if it is not valid, or for another address. Of two at once the second waits here, and finds it used. */
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

/** Who may sign up here, and whom an invitation is for: whoever has the link has read the mail. */
export const showSignUpTerms = async (
  { db, clock, settings }: Pick<AuthContext, 'db' | 'clock' | 'settings'>,
  token: string | undefined,
): Promise<SignUpTerms> => {
  const { sign_up } = settings;
  const invite = token === undefined || sign_up === 'closed' ? null : await findInvite(db, token, clock.now());
  return { sign_up, invite_valid: invite !== null, invited_email: invite?.email ?? null };
};

/**
 * Throws when this address may not sign up here. A glance before the work of a hash; `takeInvite` decides. It comes before the
 * question whether the address is taken: whoever may not sign up learns nothing about others.
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
