// Where the caller is logged in, the one used last first.
import type { UserSession } from '@tunnel/contract';
import { sha256Hex } from '@tunnel/runtime';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import type { UserActor } from '../service-context.ts';
import type { AuthContext } from './auth-context.ts';

export const listSessions = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  { userId }: UserActor,
  /** null: the request came without one. */
  refreshToken: string | null,
): Promise<UserSession[]> => {
  // Those that were not used for so long have run out.
  const since = new Date(clock.now() - PLATFORM_BOUNDS.REFRESH_TOKEN_SECS * 1000);
  const rows = await db
    .selectFrom('refresh_families as family')
    .select((family) => [
      'family.id',
      'family.created_at',
      'family.last_used_at',
      'family.user_agent',
      'family.address',
      family
        .exists(
          family
            .selectFrom('refresh_tokens as token')
            .select('token.family_id')
            .whereRef('token.family_id', '=', 'family.id')
            .where('token.token_hash', '=', refreshToken === null ? '' : sha256Hex(refreshToken)),
        )
        .as('current'),
    ])
    .where('family.user_id', '=', userId)
    .where('family.revoked_at', 'is', null)
    .where('family.last_used_at', '>', since)
    .orderBy('family.last_used_at', 'desc')
    .orderBy('family.id')
    .execute();
  return rows.map(({ created_at, last_used_at, current, ...row }) => ({
    ...row,
    current: Boolean(current),
    created_at: created_at.toISOString(),
    last_used_at: last_used_at.toISOString(),
  }));
};
