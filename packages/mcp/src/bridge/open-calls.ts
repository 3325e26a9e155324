// The calls that are under way at the server, of all callers: how many there may be, and which of them a caller means when it cancels one.
import { ProtocolError, type RequestId } from '@modelcontextprotocol/server';
import { BRIDGE_LIMITS } from './bridge-limits.ts';

/** -32000: the first of the codes that servers may give a meaning of their own. */
const TOO_MANY_CALLS = -32000;

export class OpenCalls {
  readonly #open = new Set<AbortController>();
  /** Callers of the older revisions cancel by a message of its own; ids count within what they were given as their session. */
  readonly #byCaller = new Map<string, AbortController>();

  #onIdle: (() => void)[] = [];

  /** Settles when none is under way. */
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

  /** `session`: null where closing the answer cancels. Rejects with what `call` does; with an error of its own when there are too many. */
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
      // A caller that gives two calls one id cancels the later one.
      if (key !== null && this.#byCaller.get(key) === controller) this.#byCaller.delete(key);
    }
  }

  cancel(session: string, id: RequestId): void {
    this.#byCaller.get(keyOf(session, id))?.abort();
  }
}

const keyOf = (session: string, id: RequestId): string => JSON.stringify([session, id]);
