// Begins the family of refresh tokens of one login.

import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { writeAudit } from '../audit.ts';
import type { Caller } from './auth-context.ts';
import { giveRefreshToken } from './refresh-token.ts';

export interface NewSession {
  readonly userId: string;
  /** What the password was checked against. */
  readonly seen: { readonly password_hash: string | null; readonly epoch: number };
  /** A stronger hash of the same password; null: none is needed. */
  readonly upgraded: string | null;
  readonly caller: Caller;
  readonly now: number;
}

/** Gives the first refresh token. */
export const startSession = (db: Db, { userId, seen, upgraded, caller, now }: NewSession): Promise<string> =>
  db.transaction().execute(async (trx) => {
    const user = await trx
      .selectFrom('users')
      .select(['password_hash', 'epoch'])
      .where('id', '=', userId)
      .forUpdate()
      .executeTakeFirst();
    // Hashing takes a while. A reset or a suspension in the meantime ends all sessions, this one too.
    if (user?.epoch !== seen.epoch) throw new Fault('LOGIN_WRONG');
    if (upgraded !== null && user.password_hash === seen.password_hash) {
      await trx.updateTable('users').set({ password_hash: upgraded }).where('id', '=', userId).execute();
    }
    const { id: familyId } = await trx
      .insertInto('refresh_families')
      .values({
        user_id: userId,
        user_agent: caller.userAgent.slice(0, PLATFORM_BOUNDS.USER_AGENT_MAX_CHARACTERS),
        address: caller.address,
        created_at: new Date(now),
        last_used_at: new Date(now),
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    await endOldest(trx, userId, now);
    const token = await giveRefreshToken(trx, familyId, now);
    await writeAudit(trx, { actor: `user:${userId}`, action: 'login', userId, details: { session_id: familyId } });
    return token;
  });

/** Those over the limit of an account, the one that was used longest ago first. */
const endOldest = async (trx: Transaction<Schema>, userId: string, now: number): Promise<void> => {
  await trx
    .updateTable('refresh_families')
    .set({ revoked_at: new Date(now) })
    .where('id', 'in', (family) =>
      family
        .selectFrom('refresh_families')
        .select('id')
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .orderBy('last_used_at', 'desc')
        .orderBy('created_at', 'desc')
        .offset(PLATFORM_BOUNDS.SESSIONS_PER_ACCOUNT_MAX),
    )
    .execute();
};
