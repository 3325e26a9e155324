// Idempotency-Key: the same order with the same key is carried out once, and answered the same each time. What failed on our
// side or at the processor is not kept: sending it again is the point of the key.
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

/** As long as the payment processor takes them. */
export const IDEMPOTENCY_KEY_MAX_CHARACTERS = 255;
/** What a second request with a key waits for the first one. */
const IDEMPOTENCY_WAIT_MS = 10_000;
/** How often a second request looks for the answer to the first one. */
const IDEMPOTENCY_LOOK_MS = 100;
/** What a caller is told to wait when the first one is still under way. */
const IDEMPOTENCY_RETRY_AFTER_SECS = 2;

export const IDEMPOTENCY_HEADER = 'idempotency-key';

const FORM = new RegExp(`^[\\x20-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_CHARACTERS}}$`);

interface IdempotencyDeps {
  readonly db: Db;
  readonly clock: Clock;
}

export interface Order<T> {
  /** What is asked for, and with what: another order may not have the same key. */
  readonly operation: string;
  readonly input?: unknown;
  /** `key`: null when the caller gave none. */
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

/** Waits for an order that is under way. */
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
      // The database may be the trouble: then the slot runs out by itself.
      await releaseKey(db, slot).catch(() => {});
    }
    throw error;
  }
  await storeResponse(db, slot, { status: 200, body: answer });
  return answer;
};
