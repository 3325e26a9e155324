// The tokens in the links of mails: 256 bits, stored as a hash, good for one use.
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';

/**
 * How long the link that sets a new password works.
 * @limit accounts: Password reset link, lifetime | the link has expired
 */
export const RESET_TOKEN_MS = 60 * 60_000;

/** `change`: proves an address that an account shall have from now on. */
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
  /** Of a change: the address, and the account's epoch when its owner asked for it. */
  readonly change?: { readonly newEmail: string; readonly epoch: number };
  /** As long as those of its kind unless told. */
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
  /** What the link of this page may be for. */
  readonly kinds: readonly MailTokenKind[];
  readonly now: number;
}

export interface GoodMailToken {
  readonly userId: string;
  readonly kind: MailTokenKind;
  /** Of a change; else null. */
  readonly newEmail: string | null;
}

/**
 * What it would do now; null: nothing. Uses nothing up. A change that was asked for with a password of before does nothing: whoever
 * knew that one must not get the account by a link that outlives it. Nor does any link of an account that is deleted.
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
 * Whose it is; null: it is not good (any more). Uses it up, and with it all others of its kind that the user was sent. The user
 * is locked first: two tokens of one user, used at once, must not wait for one another.
 */
export const takeMailToken = async (trx: Transaction<Schema>, shown: ShownMailToken): Promise<GoodMailToken | null> => {
  const owner = await trx
    .selectFrom('users as user')
    .innerJoin('mail_tokens as token', 'token.user_id', 'user.id')
    .select('user.id')
    .where('token.token_hash', '=', sha256Hex(shown.token))
    .forUpdate('user')
    .executeTakeFirst();
  // Asked after the lock: whoever had it before us may have used it.
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
