// The slots of idempotency keys in the database: taken by the first request with a key, filled with its answer.
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { nameOfKey, openAnswer, sealAnswer } from './sealed-answer.ts';

/** One order of one account. */
export interface KeyedOrder {
  readonly userId: string;
  readonly key: string;
  readonly operation: string;
  readonly requestHash: string;
}

/** Ours to fill. Taken then: somebody else may have taken it since, when we were too slow. */
export interface AnswerSlot {
  readonly userId: string;
  readonly key: string;
  readonly takenAt: Date;
}

export interface KeptAnswer {
  readonly status: number;
  readonly body: unknown;
}

export type FoundSlot =
  | { readonly kind: 'ours'; readonly slot: AnswerSlot }
  | { readonly kind: 'under-way' }
  | { readonly kind: 'answered'; readonly answer: KeptAnswer };

/** Throws IDEMPOTENCY_KEY_REUSED when the key is another order's. */
export const takeSlot = async (db: Db, order: KeyedOrder, now: number): Promise<FoundSlot> => {
  const { userId, key } = order;
  const takenAt = new Date(now);
  const taken = await sql`
    insert into idempotency_keys (user_id, key, operation, request_hash, created_at)
    values (${userId}, ${nameOfKey(order)}, ${order.operation}, ${order.requestHash}, ${takenAt})
    on conflict (user_id, key) do update
    set operation = excluded.operation, request_hash = excluded.request_hash, created_at = excluded.created_at,
      status = null, body = null
    where idempotency_keys.created_at <= ${new Date(now - PLATFORM_BOUNDS.IDEMPOTENCY_KEPT_MS)}
      or (
        idempotency_keys.status is null
        and idempotency_keys.created_at <= ${new Date(now - PLATFORM_BOUNDS.IDEMPOTENCY_LEASE_MS)}
        and idempotency_keys.operation = excluded.operation
        and idempotency_keys.request_hash = excluded.request_hash
      )
  `.execute(db);
  if (taken.numAffectedRows === 1n) return { kind: 'ours', slot: { userId, key, takenAt } };
  return readSlot(db, order);
};

const readSlot = async (db: Db, { userId, key, operation, requestHash }: KeyedOrder): Promise<FoundSlot> => {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['operation', 'request_hash', 'status', 'body'])
    .where('user_id', '=', userId)
    .where('key', '=', nameOfKey({ userId, key }))
    .executeTakeFirst();
  // Left a moment ago: to be taken with the next look.
  if (row === undefined) return { kind: 'under-way' };
  if (row.operation !== operation || row.request_hash !== requestHash) throw new Fault('IDEMPOTENCY_KEY_REUSED');
  if (row.status === null || row.body === null) return { kind: 'under-way' };
  return { kind: 'answered', answer: { status: row.status, body: openAnswer({ userId, key }, row.body) } };
};

export const keepAnswer = async (db: Db, slot: AnswerSlot, { status, body }: KeptAnswer): Promise<void> => {
  await db
    .updateTable('idempotency_keys')
    .set({ status, body: sealAnswer(slot, body) })
    .where('user_id', '=', slot.userId)
    .where('key', '=', nameOfKey(slot))
    .where('created_at', '=', slot.takenAt)
    .execute();
};

/** For the next one with this key. */
export const leaveSlot = async (db: Db, slot: AnswerSlot): Promise<void> => {
  await db
    .deleteFrom('idempotency_keys')
    .where('user_id', '=', slot.userId)
    .where('key', '=', nameOfKey(slot))
    .where('created_at', '=', slot.takenAt)
    .execute();
};
