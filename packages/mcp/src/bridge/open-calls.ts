// Tracks the calls in progress at the server, from all callers: limits their number, and finds the call that a caller wants to cancel.
import { ProtocolError, type RequestId } from '@modelcontextprotocol/server';
import { BRIDGE_LIMITS } from './bridge-limits.ts';

/** JSON-RPC error code -32000, the first code that servers can define freely. */
const TOO_MANY_CALLS = -32000;

export class OpenCalls {
  readonly #open = new Set<AbortController>();
  /**
   * Open calls by session and request id. Callers with older protocol revisions cancel with a separate message, and their request ids are
   * unique only within a session.
   */
  readonly #byCaller = new Map<string, AbortController>();

  #onIdle: (() => void)[] = [];

  /** Resolves when no call is in progress. */
  idle(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  get size(): number {
    return this.#open.size;
  }

  get isFull(): boolean {
    return this.#open.size >= BRIDGE_LIMITS.CALLS_MAX;
  }

  /**
   * Runs a call. `session` is null if the caller cancels by closing the response. Rejects with the error of `call`, or with
   * TOO_MANY_CALLS at the limit.
   */
  async run<T>(session: string | null, id: RequestId, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.isFull) {
      throw new ProtocolError(
        TOO_MANY_CALLS,
        `limit of ${BRIDGE_LIMITS.CALLS_MAX} concurrent calls reached; try again soon`,
      );
    }
    const controller = new AbortController();
    const key = session === null ? null : keyOf(session, id);
    this.#open.add(controller);
    if (key !== null) this.#byCaller.set(key, controller);
    try {
      return await call(controller.signal);
    } finally {
      this.#open.delete(controller);
      if (this.#open.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
      // If a caller uses the same id for two calls, the entry belongs to the later call.
      if (key !== null && this.#byCaller.get(key) === controller) this.#byCaller.delete(key);
    }
  }

  cancel(session: string, id: RequestId): void {
    this.#byCaller.get(keyOf(session, id))?.abort();
  }
}

const keyOf = (session: string, id: RequestId): string => JSON.stringify([session, id]);
