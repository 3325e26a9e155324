// Certificates made ready for handshakes (`SecureContext`): as many as were asked for last, and no more new ones a second than leave the loop free for
// everybody else. To make one blocks it for over a millisecond; who needs one over the pace waits for its turn.
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { renewTicketKeys } from '@tunnel/mux';
import { Cache, type Clock, type Timer } from '@tunnel/runtime';

/** What a context is made of; one object for as long as it is in use. */
export interface ContextSource {
  /** The context, or null while none is ready. Managed by the cache. */
  context: SecureContext | null;
  /** Handshakes that wait for the context, or null. Managed by the cache. */
  waiters: Set<ContextWaiter> | null;
  /** Its certificate is still being made; null: it is there. */
  readonly making?: Promise<void> | null;
  options(): SecureContextOptions;
}

/** One of the two is called, once; neither throws. */
export interface ContextWaiter {
  onContext(context: SecureContext): void;
  /** No context can be made of it, though certificate and key belong together: its key is too short, or of a kind that OpenSSL does not know. */
  onBroken(error: unknown): void;
}

export interface ContextCacheOptions {
  readonly contextsMax: number;
  readonly perSecond: number;
  readonly clock: Clock;
}

export class ContextCache {
  readonly #given: ContextCacheOptions;
  readonly #ready: Cache<ContextSource, SecureContext>;
  /** Those that are waited for, in the order in which they were asked for. */
  readonly #queue = new Set<ContextSource>();
  #nextMs = 0;
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(options: ContextCacheOptions) {
    this.#given = options;
    this.#ready = new Cache({
      max: options.contextsMax,
      onLeave: (_context, source) => {
        source.context = null;
      },
    });
  }

  get size(): number {
    return this.#ready.size;
  }

  /** Of these each has somebody who waits for it. */
  get waitedFor(): number {
    return this.#queue.size;
  }

  /** null: not now; wait() says when. */
  get(source: ContextSource): SecureContext | null {
    if (source.context !== null) {
      this.#ready.get(source);
      return source.context;
    }
    const nowMs = this.#given.clock.monotonic();
    if (this.#queue.size > 0 || nowMs < this.#nextMs || !isMade(source)) return null;
    try {
      return this.#make(source, nowMs);
    } catch {
      // Whoever waits for it is told.
      return null;
    }
  }

  /** After a get() that gave none. The waiter is called later, once, unless it leaves. */
  wait(source: ContextSource, waiter: ContextWaiter): void {
    source.waiters ??= new Set();
    source.waiters.add(waiter);
    this.#enqueue(source);
  }

  #enqueue(source: ContextSource): void {
    if (isMade(source)) {
      this.#queue.add(source);
      this.#wakeUp();
      return;
    }
    // Whoever left meanwhile took itself out of the waiters; a failure is met, and told, when its turn comes.
    const goOn = (): void => {
      if (source.waiters === null || this.#isStopped) return;
      this.#queue.add(source);
      this.#wakeUp();
    };
    source.making?.then(goOn, goOn);
  }

  /** For one that nobody waits for nothing is made. */
  leave(source: ContextSource, waiter: ContextWaiter): void {
    source.waiters?.delete(waiter);
    if (source.waiters?.size !== 0) return;
    source.waiters = null;
    this.#queue.delete(source);
  }

  /** It is not shown any more. Who waits for it is served all the same: its name was good when it came. */
  drop(source: ContextSource): void {
    this.#ready.delete(source);
  }

  /** A day is over: tickets are sealed by another key from here on. */
  renewTickets(keys: Buffer): void {
    for (const source of this.#ready.keys()) {
      if (source.context === null || renewTicketKeys(source.context, keys)) continue;
      // A Node that has changed inside: it is made again when it is asked for.
      this.drop(source);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.#queue.clear();
  }

  #make(source: ContextSource, nowMs: number): SecureContext {
    this.#nextMs = nowMs + 1000 / this.#given.perSecond;
    const context = createSecureContext(source.options());
    source.context = context;
    this.#ready.set(source, context);
    return context;
  }

  #wakeUp(): void {
    const { clock } = this.#given;
    this.#timer ??= clock.setTimeout(() => this.#next(), Math.max(1, Math.ceil(this.#nextMs - clock.monotonic())));
  }

  #next(): void {
    this.#timer = null;
    for (const source of this.#queue) {
      this.#queue.delete(source);
      const waiters = source.waiters ?? [];
      source.waiters = null;
      this.#serve(source, waiters);
      break;
    }
    if (this.#queue.size > 0) this.#wakeUp();
  }

  #serve(source: ContextSource, waiters: Iterable<ContextWaiter>): void {
    let context: SecureContext;
    try {
      // Meanwhile somebody else may have had it made.
      context = source.context ?? this.#make(source, this.#given.clock.monotonic());
    } catch (error) {
      for (const waiter of waiters) waiter.onBroken(error);
      return;
    }
    for (const waiter of waiters) waiter.onContext(context);
  }
}

const isMade = ({ making }: ContextSource): boolean => making === undefined || making === null;
