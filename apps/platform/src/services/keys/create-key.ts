// Makes an API key. Only its hash is kept: the answer is the one place where the key itself is seen.
import { randomBytes } from 'node:crypto';
import type { CreatedKey, NewKey } from '@tunnel/contract';
import { API_KEY_RANDOM_BYTES, makeApiKey } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { writeAudit } from '../audit/write-audit.ts';
import type { ServiceContext, UserActor } from '../service-context.ts';

type Context = Pick<ServiceContext, 'db' | 'clock'>;

export const createKey = async (
  { db, clock }: Context,
  { userId }: UserActor,
  { label }: NewKey,
): Promise<CreatedKey> => {
  const token = makeApiKey(randomBytes(API_KEY_RANDOM_BYTES));
  const limit = PLATFORM_BOUNDS.KEYS_PER_ACCOUNT_MAX;
  return db.transaction().execute(async (trx) => {
    // One after the other: those who count at once would all find room.
    await trx.selectFrom('users').select('id').where('id', '=', userId).forNoKeyUpdate().execute();
    const { held } = await trx
      .selectFrom('api_keys')
      .select((count) => count.fn.countAll<number>().as('held'))
      .where('user_id', '=', userId)
      .where('status', '=', 'active')
      .executeTakeFirstOrThrow();
    if (held >= limit) throw new Fault('KEY_LIMIT', { limit });
    const { id } = await trx
      .insertInto('api_keys')
      .values({ user_id: userId, label, token_hash: sha256Hex(token), created_at: new Date(clock.now()) })
      .returning('id')
      .executeTakeFirstOrThrow();
    await writeAudit(trx, { actor: `user:${userId}`, action: 'key.created', userId, details: { key_id: id } });
    return { id, token };
  });
};
