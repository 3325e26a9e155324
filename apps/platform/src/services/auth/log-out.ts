// Ends the session of a refresh token. A token of nothing ends nothing.

import { sha256Hex } from '@tunnel/runtime';
import { writeAudit } from '../audit.ts';
import type { AuthContext } from './auth-context.ts';
import { endFamily } from './refresh-token.ts';

export const logOut = async ({ db, clock }: Pick<AuthContext, 'db' | 'clock'>, refreshToken: string): Promise<void> => {
  await db.transaction().execute(async (trx) => {
    const family = await trx
      .selectFrom('refresh_tokens as token')
      .innerJoin('refresh_families as family', 'family.id', 'token.family_id')
      .select(['family.id', 'family.user_id'])
      .where('token.token_hash', '=', sha256Hex(refreshToken))
      .executeTakeFirst();
    if (family === undefined || !(await endFamily(trx, family.id, clock.now()))) return;
    const userId = family.user_id;
    await writeAudit(trx, { actor: `user:${userId}`, action: 'logout', userId, details: { session_id: family.id } });
  });
};
