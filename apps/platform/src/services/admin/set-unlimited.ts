// Frees one key from the tunnel limit of its account's plan, or binds it again.
import { Fault } from '@tunnel/errors';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { announceChange } from '../edges/announce-change.ts';
import { isUuid } from '../is-uuid.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';

/** false: it was so already. */
export const setUnlimited = async (
  { db }: Pick<OperatorContext, 'db'>,
  actor: OperatorActor,
  { keyId, unlimited }: { readonly keyId: string; readonly unlimited: boolean },
): Promise<{ changed: boolean }> => {
  if (!isUuid(keyId)) throw new Fault('KEY_UNKNOWN');
  return db.transaction().execute(async (trx) => {
    const key = await trx
      .selectFrom('api_keys')
      .select(['user_id', 'unlimited'])
      .where('id', '=', keyId)
      .where('status', '=', 'active')
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (key === undefined) throw new Fault('KEY_UNKNOWN');
    if (key.unlimited === unlimited) return { changed: false };
    await trx.updateTable('api_keys').set({ unlimited }).where('id', '=', keyId).execute();
    await writeAudit(trx, {
      actor: actorName(actor),
      action: 'key.unlimited-set',
      userId: key.user_id,
      details: { key_id: keyId, unlimited },
    });
    await announceChange(trx, { kind: 'account-changed', accountId: key.user_id });
    return { changed: true };
  });
};
