// Idempotency keys in the database. The first request with a key reserves the key and stores its encrypted response there.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { LIMITS } from '../../limits.ts';

/** Time after which a request without a response counts as lost with its process. The next request with the key is executed again. */
export const IDEMPOTENCY_LEASE_MS = 90_000;

/** A request of an account with an idempotency key. */
export interface KeyedRequest {
  readonly userId: string;
  readonly key: string;
  readonly operation: string;
  readonly requestHash: string;
}

/**
 * A key reserved by this request. `takenAt` identifies the reservation: if the request is too slow, another request may reserve the key.
 */
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
 * Reserves an idempotency key, or returns the response of the earlier request with the key. Throws IDEMPOTENCY_KEY_REUSED if the key
 * belongs to a different request.
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
  // The key was released a moment ago. The next attempt can reserve it.
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

/** Releases a key, so that the next request with the key is executed. */
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

/** Returns the hash under which the response of a key is stored. */
export const hashOfKey = ({ userId, key }: ResponseKey): string =>
  createHash('sha256').update(`name ${userId} ${key}`).digest('hex');

/**
 * Derives the encryption key of a stored response from the idempotency key. Responses contain secrets (a client secret, a portal link).
 * Only a caller with the idempotency key asks for the response, and the database does not contain the idempotency key.
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
