// Logs the caller out somewhere else. The access token that place may hold runs out within 15 minutes.

import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit.ts';
import { isUuid } from '../is-uuid.ts';
import type { UserActor } from '../service-context.ts';
import type { AuthContext } from './auth-context.ts';

export const endSession = async (
  { db, clock }: Pick<AuthContext, 'db' | 'clock'>,
  { userId }: UserActor,
  sessionId: string,
): Promise<void> => {
  if (!isUuid(sessionId)) throw new Fault('LOGIN_SESSION_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const ended = await trx
      .updateTable('refresh_families')
      .set({ revoked_at: new Date(clock.now()) })
      .where('id', '=', sessionId)
      .where('user_id', '=', userId)
      .where('revoked_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    if (ended === undefined) throw new Fault('LOGIN_SESSION_UNKNOWN');
    await writeAudit(trx, {
      actor: `user:${userId}`,
      action: 'session.ended',
      userId,
      details: { session_id: ended.id },
    });
  });
};
