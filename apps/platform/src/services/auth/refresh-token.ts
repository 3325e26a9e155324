// Refresh tokens: 256 bits, stored as a hash; all that come of one login are a family, and end together.
import { randomToken, sha256Hex } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';

export const giveRefreshToken = async (trx: Transaction<Schema>, familyId: string, now: number): Promise<string> => {
  const token = randomToken(32);
  await trx
    .insertInto('refresh_tokens')
    .values({
      token_hash: sha256Hex(token),
      family_id: familyId,
      created_at: new Date(now),
      expires_at: new Date(now + PLATFORM_BOUNDS.REFRESH_TOKEN_SECS * 1000),
    })
    .execute();
  return token;
};

/** All that live, of one user. */
export const endFamilies = async (trx: Transaction<Schema>, userId: string, now: number): Promise<void> => {
  await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .execute();
};

export const endFamily = async (trx: Transaction<Schema>, familyId: string, now: number): Promise<boolean> => {
  const ended = await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('id', '=', familyId)
    .where('revoked_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
};
