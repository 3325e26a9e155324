// Tokens in the links of mails: 256 bits, stored as a hash, valid for one use.
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';

/**
 * Lifetime of the link to set a new password.
 * @limit accounts: Password reset link, lifetime | the link has expired
 */
export const RESET_TOKEN_MS = 60 * 60_000;

/** Purpose of a mail token. A `change` token verifies an address and makes it the account's new address. */
export type MailTokenKind = 'verify' | 'reset' | 'change';

const LIFE_MS: Readonly<Record<MailTokenKind, number>> = {
  verify: LIMITS.VERIFY_TOKEN_MS,
  reset: RESET_TOKEN_MS,
  change: LIMITS.VERIFY_TOKEN_MS,
};

export interface NewMailToken {
  readonly kind: MailTokenKind;
  readonly userId: string;
  readonly now: number;
  /** Only for a `change` token: the new address, and the account's epoch at the time of the request. */
  readonly change?: { readonly newEmail: string; readonly epoch: number };
  /** Lifetime in milliseconds. The default depends on the kind of the token. */
  readonly lifeMs?: number;
}

export const giveMailToken = async (
  trx: Transaction<Schema>,
  { kind, userId, now, change, lifeMs = LIFE_MS[kind] }: NewMailToken,
): Promise<string> => {
  const token = randomToken(32);
  await trx
    .insertInto('mail_tokens')
    .values({
      token_hash: sha256Hex(token),
      user_id: userId,
      kind,
      created_at: new Date(now),
      expires_at: new Date(now + lifeMs),
      new_email: change?.newEmail ?? null,
      epoch: change?.epoch ?? null,
    })
    .execute();
  return token;
};

export interface ShownMailToken {
  readonly token: string;
  /** Kinds of tokens accepted by the page that received the token. */
  readonly kinds: readonly MailTokenKind[];
  readonly now: number;
}

export interface GoodMailToken {
  readonly userId: string;
  readonly kind: MailTokenKind;
  /** New address of a `change` token; null for other kinds. */
  readonly newEmail: string | null;
}

/**
 * Finds a valid mail token without using it up. Returns null if the token is invalid. A `change` token is invalid once the password has
 * changed, so that a person who knew the old password cannot take over the account with an older link. Tokens of deleted accounts are
 * invalid too.
 */
export const findMailToken = async (
  db: Db | Transaction<Schema>,
  { token, kinds, now }: ShownMailToken,
): Promise<GoodMailToken | null> => {
  const row = await db
    .selectFrom('mail_tokens as token')
    .innerJoin('users as user', 'user.id', 'token.user_id')
    .select(['token.user_id as userId', 'token.kind', 'token.new_email as newEmail'])
    .where('token.token_hash', '=', sha256Hex(token))
    .where('token.kind', 'in', kinds)
    .where('token.used_at', 'is', null)
    .where('token.expires_at', '>', new Date(now))
    .where('user.deleted_at', 'is', null)
    .where((is) => is.or([is('token.kind', '<>', 'change'), is('token.epoch', '=', is.ref('user.epoch'))]))
    .executeTakeFirst();
  return row ?? null;
};

/**
 * Uses up a mail token and all other tokens of the same kind and user. Returns null if the token is invalid. The user row is locked
 * first, to avoid a deadlock when two tokens of the same user are used at the same time.
 */
export const takeMailToken = async (trx: Transaction<Schema>, shown: ShownMailToken): Promise<GoodMailToken | null> => {
  const owner = await trx
    .selectFrom('users as user')
    .innerJoin('mail_tokens as token', 'token.user_id', 'user.id')
    .select('user.id')
    .where('token.token_hash', '=', sha256Hex(shown.token))
    .forUpdate('user')
    .executeTakeFirst();
  // The token is checked after the lock, because an earlier holder of the lock may have used the token.
  const good = owner === undefined ? null : await findMailToken(trx, shown);
  if (good === null) return null;
  await trx
    .updateTable('mail_tokens')
    .set({ used_at: new Date(shown.now) })
    .where('user_id', '=', good.userId)
    .where('kind', '=', good.kind)
    .where('used_at', 'is', null)
    .execute();
  return good;
};
