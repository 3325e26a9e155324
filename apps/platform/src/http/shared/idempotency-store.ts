// The slots of idempotency keys in the database: taken by the first request with a key, filled with its encrypted response.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { LIMITS } from '../../limits.ts';

/** A request without an answer after so long has died with its process: the next one with its key is done anew. */
export const IDEMPOTENCY_LEASE_MS = 90_000;

/** One order of one account. */
export interface KeyedRequest {
  readonly userId: string;
  readonly key: string;
  readonly operation: string;
  readonly requestHash: string;
}

/** Ours to fill. Taken then: somebody else may have taken it since, when we were too slow. */
export interface KeyReservation {
  readonly userId: string;
  readonly key: string;
  readonly takenAt: Date;
}

export interface StoredResponse {
  readonly status: number;
  readonly body: unknown;
}

export type KeyState =
  | { readonly kind: 'ours'; readonly slot: KeyReservation }
  | { readonly kind: 'under-way' }
  | { readonly kind: 'answered'; readonly answer: StoredResponse };

/**
 * The slots of idempotency keys in the database: taken by the first request with a key, filled with its answer. Throws
 * IDEMPOTENCY_KEY_REUSED when the key is another order's.
 */
export const reserveKey = async (db: Db, order: KeyedRequest, now: number): Promise<KeyState> => {
  const { userId, key } = order;
  const takenAt = new Date(now);
  const taken = await sql`
    insert into idempotency_keys (user_id, key, operation, request_hash, created_at)
    values (${userId}, ${hashOfKey(order)}, ${order.operation}, ${order.requestHash}, ${takenAt})
    on conflict (user_id, key) do update
    set operation = excluded.operation, request_hash = excluded.request_hash, created_at = excluded.created_at,
      status = null, body = null
    where idempotency_keys.created_at <= ${new Date(now - LIMITS.IDEMPOTENCY_KEPT_MS)}
      or (
        idempotency_keys.status is null
        and idempotency_keys.created_at <= ${new Date(now - IDEMPOTENCY_LEASE_MS)}
        and idempotency_keys.operation = excluded.operation
        and idempotency_keys.request_hash = excluded.request_hash
      )
  `.execute(db);
  if (taken.numAffectedRows === 1n) return { kind: 'ours', slot: { userId, key, takenAt } };
  return readKey(db, order);
};

const readKey = async (db: Db, { userId, key, operation, requestHash }: KeyedRequest): Promise<KeyState> => {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['operation', 'request_hash', 'status', 'body'])
    .where('user_id', '=', userId)
    .where('key', '=', hashOfKey({ userId, key }))
    .executeTakeFirst();
  // Left a moment ago: to be taken with the next look.
  if (row === undefined) return { kind: 'under-way' };
  if (row.operation !== operation || row.request_hash !== requestHash) throw new Fault('IDEMPOTENCY_KEY_REUSED');
  if (row.status === null || row.body === null) return { kind: 'under-way' };
  return { kind: 'answered', answer: { status: row.status, body: decryptResponse({ userId, key }, row.body) } };
};

export const storeResponse = async (db: Db, slot: KeyReservation, { status, body }: StoredResponse): Promise<void> => {
  await db
    .updateTable('idempotency_keys')
    .set({ status, body: encryptResponse(slot, body) })
    .where('user_id', '=', slot.userId)
    .where('key', '=', hashOfKey(slot))
    .where('created_at', '=', slot.takenAt)
    .execute();
};

/** For the next one with this key. */
export const releaseKey = async (db: Db, slot: KeyReservation): Promise<void> => {
  await db
    .deleteFrom('idempotency_keys')
    .where('user_id', '=', slot.userId)
    .where('key', '=', hashOfKey(slot))
    .where('created_at', '=', slot.takenAt)
    .execute();
};

export interface ResponseKey {
  readonly userId: string;
  readonly key: string;
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Under which a response is looked for. */
export const hashOfKey = ({ userId, key }: ResponseKey): string =>
  createHash('sha256').update(`name ${userId} ${key}`).digest('hex');

/**
 * Stored responses hold secrets (a client secret, a link to the portal), and are only ever asked for by somebody who has the key
 * that they were given under: so that key, which is not stored itself, is what opens them.
 */
const cipherKey = ({ userId, key }: ResponseKey): Buffer =>
  Buffer.from(hkdfSync('sha256', key, userId, 'kept answer', 32));

export const encryptResponse = (of: ResponseKey, body: unknown): string => {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, cipherKey(of), nonce);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(body), 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
};

export const decryptResponse = (of: ResponseKey, sealed: string): unknown => {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(CIPHER, cipherKey(of), bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  return JSON.parse(text.toString('utf8'));
};
