// Ends a key: it is no longer listed, no client comes in with it, and every edge is told to close the sessions that use it.
import { Fault } from '@tunnel/errors';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import { isUuid } from '../is-uuid.ts';
import type { ServiceContext, UserActor } from '../service-context.ts';

export const revokeKey = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
  keyId: string,
): Promise<void> => {
  if (!isUuid(keyId)) throw new Fault('KEY_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const revoked = await trx
      .updateTable('api_keys')
      .set({ status: 'revoked', revoked_at: new Date(clock.now()) })
      .where('id', '=', keyId)
      .where('user_id', '=', userId)
      .where('status', '=', 'active')
      .returning('id')
      .executeTakeFirst();
    if (revoked === undefined) throw new Fault('KEY_UNKNOWN');
    const { id } = revoked;
    await writeAudit(trx, { actor: `user:${userId}`, action: 'key.revoked', userId, details: { key_id: id } });
    await announceChange(trx, { kind: 'key-revoked', keyId: id, accountId: userId });
  });
};
