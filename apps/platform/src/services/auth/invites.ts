// Invitations to sign up: each for one address, good for one account and seven days. Stored as a hash; the row goes with its use.
import type { SignUpTerms } from '@tunnel/contract';
import { normalizeAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import type { AuthContext } from './auth-context.ts';

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
      expires_at: new Date(now + LIMITS.INVITE_MS),
    })
    .execute();
  return token;
};

/** null: it is unknown, was used, or has expired. Uses nothing up. */
const invitedBy = async (db: Db, token: string, now: number): Promise<string | null> => {
  const row = await db
    .selectFrom('invites')
    .select('email')
    .where('token_hash', '=', sha256Hex(token))
    .where('expires_at', '>', new Date(now))
    .executeTakeFirst();
  return row?.email ?? null;
};

/** false: it is not good, or not for this address. Whoever comes second waits here, and finds it used. */
export const takeInvite = async (
  trx: Transaction<Schema>,
  { token, email, now }: { readonly token: string; readonly email: string; readonly now: number },
): Promise<boolean> => {
  const taken = await trx
    .deleteFrom('invites')
    .where('token_hash', '=', sha256Hex(token))
    .where('email', '=', email)
    .where('expires_at', '>', new Date(now))
    .returning('email')
    .executeTakeFirst();
  return taken !== undefined;
};

/** Who may sign up here, and whom an invitation is for: whoever has the link has read the mail. */
export const showSignUpTerms = async (
  { db, clock, settings }: Pick<AuthContext, 'db' | 'clock' | 'settings'>,
  invite: string | undefined,
): Promise<SignUpTerms> => {
  const { sign_up } = settings;
  if (invite === undefined || sign_up === 'closed') return { sign_up, invited_email: null };
  return { sign_up, invited_email: await invitedBy(db, invite, clock.now()) };
};

/**
 * Throws when this address may not sign up here. A glance before the work of a hash; `takeInvite` decides. It comes before the
 * question whether the address is taken: whoever may not sign up learns nothing about others.
 */
export const checkSignUp = async (
  { db, clock, settings }: Pick<AuthContext, 'db' | 'clock' | 'settings'>,
  { email, invite }: { readonly email: string; readonly invite?: string | undefined },
): Promise<void> => {
  if (settings.sign_up === 'open') return;
  if (settings.sign_up === 'closed') throw new Fault('SIGN_UP_CLOSED');
  const invited = invite === undefined ? null : await invitedBy(db, invite, clock.now());
  if (invited !== normalizeAddress(email)) throw new Fault('SIGN_UP_BY_INVITATION');
};
