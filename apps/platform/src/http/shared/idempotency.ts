// Idempotency-Key: a request repeated with the same key is executed once and gets the same response. Failures of the platform or the
// payment processor are not stored, because such a request must be repeatable.
import { Fault } from '@tunnel/errors';
import { headerOf } from '@tunnel/http-shell';
import { type Clock, sha256Hex } from '@tunnel/runtime';
import type { Context } from 'hono';
import type { Db } from '../../db/database.ts';
import {
  type KeyedRequest,
  type KeyReservation,
  type KeyState,
  releaseKey,
  reserveKey,
  type StoredResponse,
  storeResponse,
} from './idempotency-store.ts';
import type { PlatformEnv } from './platform-env.ts';

/** Maximum length of an idempotency key, the same as at the payment processor. */
export const IDEMPOTENCY_KEY_MAX_CHARACTERS = 255;
/** Maximum time for which a second request with a key waits for the response to the first request. */
const IDEMPOTENCY_WAIT_MS = 10_000;
/** Interval for checking whether the first request has been answered. */
const IDEMPOTENCY_LOOK_MS = 100;
/** Retry time sent to a caller if the first request is still running. */
const IDEMPOTENCY_RETRY_AFTER_SECS = 2;

export const IDEMPOTENCY_HEADER = 'idempotency-key';

const FORM = new RegExp(`^[\\x20-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_CHARACTERS}}$`);

interface IdempotencyDeps {
  readonly db: Db;
  readonly clock: Clock;
}

export interface Order<T> {
  /** Name of the operation. A key is bound to the operation and its input. */
  readonly operation: string;
  readonly input?: unknown;
  /** Executes the request. `key` is null if the caller sent no idempotency key. */
  readonly execute: (key: string | null) => Promise<T>;
}

export const once = async <T>(deps: IdempotencyDeps, context: Context<PlatformEnv>, order: Order<T>): Promise<T> => {
  const key = keyOf(context);
  if (key === null) return order.execute(null);
  const found = await waitForKey(deps, {
    userId: context.get('actor').userId,
    key,
    operation: order.operation,
    requestHash: sha256Hex(JSON.stringify(order.input ?? null)),
  });
  if (found.kind === 'answered') return answerOf<T>(found.answer);
  return executeOnce(deps, found.slot, () => order.execute(key));
};

const keyOf = (context: Context<PlatformEnv>): string | null => {
  const key = headerOf(context, IDEMPOTENCY_HEADER);
  if (key === undefined) return null;
  if (FORM.test(key)) return key;
  throw new Fault('IDEMPOTENCY_KEY_INVALID', { limit: IDEMPOTENCY_KEY_MAX_CHARACTERS });
};

/** Reserves the key. Waits while an earlier request with the key is running. */
const waitForKey = async (
  { db, clock }: IdempotencyDeps,
  order: KeyedRequest,
): Promise<Exclude<KeyState, { readonly kind: 'under-way' }>> => {
  const endsAt = clock.monotonic() + IDEMPOTENCY_WAIT_MS;
  for (;;) {
    const found = await reserveKey(db, order, clock.now());
    if (found.kind !== 'under-way') return found;
    if (clock.monotonic() >= endsAt) {
      throw new Fault('IDEMPOTENCY_KEY_BUSY', { seconds: IDEMPOTENCY_RETRY_AFTER_SECS });
    }
    await new Promise<void>((resolve) => {
      clock.setTimeout(resolve, IDEMPOTENCY_LOOK_MS);
    });
  }
};

const answerOf = <T>({ status, body }: StoredResponse): T => {
  if (status < 400) return body as T;
  const { code, error } = body as { readonly code: string; readonly error: string };
  throw Fault.fromWire(code, error);
};

const executeOnce = async <T>({ db }: IdempotencyDeps, slot: KeyReservation, execute: () => Promise<T>): Promise<T> => {
  let answer: T;
  try {
    answer = await execute();
  } catch (error) {
    if (error instanceof Fault && error.status < 500) {
      await storeResponse(db, slot, { status: error.status, body: { error: error.message, code: error.code } });
    } else {
      // If the release fails because the database is unavailable, the reservation expires automatically.
      await releaseKey(db, slot).catch(() => {});
    }
    throw error;
  }
  await storeResponse(db, slot, { status: 200, body: answer });
  return answer;
};
