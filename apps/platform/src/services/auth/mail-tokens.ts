// The tokens in the links of mails: 256 bits, stored as a hash, good for one use.
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';

export type MailTokenKind = 'verify' | 'reset';

const LIFE_MS: Readonly<Record<MailTokenKind, number>> = {
  verify: LIMITS.VERIFY_TOKEN_MS,
  reset: LIMITS.RESET_TOKEN_MS,
};

export const giveMailToken = async (
  trx: Transaction<Schema>,
  kind: MailTokenKind,
  userId: string,
  now: number,
): Promise<string> => {
  const token = randomToken(32);
  await trx
    .insertInto('mail_tokens')
    .values({
      token_hash: sha256Hex(token),
      user_id: userId,
      kind,
      created_at: new Date(now),
      expires_at: new Date(now + LIFE_MS[kind]),
    })
    .execute();
  return token;
};

/** It would be taken now. Uses nothing up. */
export const isMailTokenGood = async (
  db: Db | Transaction<Schema>,
  kind: MailTokenKind,
  token: string,
  now: number,
): Promise<boolean> => {
  const row = await db
    .selectFrom('mail_tokens')
    .select('user_id')
    .where('token_hash', '=', sha256Hex(token))
    .where('kind', '=', kind)
    .where('used_at', 'is', null)
    .where('expires_at', '>', new Date(now))
    .executeTakeFirst();
  return row !== undefined;
};

/**
 * Whose it is; null: it is not good (any more). Uses it up, and with it all others of its kind that the user was sent. The user
 * is locked first: two tokens of one user, used at once, must not wait for one another.
 */
export const takeMailToken = async (
  trx: Transaction<Schema>,
  kind: MailTokenKind,
  token: string,
  now: number,
): Promise<string | null> => {
  const token_hash = sha256Hex(token);
  const owner = await trx
    .selectFrom('users as user')
    .innerJoin('mail_tokens as token', 'token.user_id', 'user.id')
    .select('user.id')
    .where('token.token_hash', '=', token_hash)
    .forUpdate('user')
    .executeTakeFirst();
  // Asked after the lock: whoever had it before us may have used it.
  if (owner === undefined || !(await isMailTokenGood(trx, kind, token, now))) return null;
  await trx
    .updateTable('mail_tokens')
    .set({ used_at: new Date(now) })
    .where('user_id', '=', owner.id)
    .where('kind', '=', kind)
    .where('used_at', 'is', null)
    .execute();
  return owner.id;
};
