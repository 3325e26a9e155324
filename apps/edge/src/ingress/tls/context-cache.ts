// Cache of contexts (`SecureContext`), which are certificates prepared for handshakes. Keeps the most recently used contexts and limits how
// many are created per second, because creating a context blocks the event loop for more than a millisecond. Handshakes above the rate wait
// in a queue.
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { renewTicketKeys } from '@tunnel/mux';
import { Cache, type Clock, type Timer } from '@tunnel/runtime';

/** Source of a context. The same object is used as long as the certificate is in use. */
export interface ContextSource {
  /** The TLS context of the certificate, or null while none is ready. Managed by the cache. */
  context: SecureContext | null;
  /** Handshakes that wait for the TLS context, or null. Managed by the cache. */
  waiters: Set<ContextWaiter> | null;
  /** Resolves when the certificate is issued. Null or undefined if the certificate exists. */
  readonly making?: Promise<void> | null;
  options(): SecureContextOptions;
}

/** Waits for a context. Exactly one of the methods is called, once. Neither may throw. */
export interface ContextWaiter {
  onContext(context: SecureContext): void;
  /**
   * Called if no context can be created although certificate and key match, for example because the key is too short or of a type unknown
   * to OpenSSL.
   */
  onBroken(error: unknown): void;
}

export interface ContextCacheOptions {
  readonly contextsMax: number;
  readonly perSecond: number;
  readonly clock: Clock;
}

export class ContextCache {
  readonly #options: ContextCacheOptions;
  readonly #ready: Cache<ContextSource, SecureContext>;
  /** Certificates with handshakes that wait for a TLS context, in order of request. */
  readonly #queue = new Set<ContextSource>();
  #nextMs = 0;
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(options: ContextCacheOptions) {
    this.#options = options;
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

  /** Number of certificates with at least one handshake waiting for their TLS context. */
  get waitedFor(): number {
    return this.#queue.size;
  }

  /** Returns the context, or null if it is not ready. A waiter added with wait() is called later. */
  get(source: ContextSource): SecureContext | null {
    if (source.context !== null) {
      this.#ready.get(source);
      return source.context;
    }
    const nowMs = this.#options.clock.monotonic();
    if (this.#queue.size > 0 || nowMs < this.#nextMs || !isMade(source)) return null;
    try {
      return this.#make(source, nowMs);
    } catch {
      // The error is reported to the handshakes that wait for the TLS context.
      return null;
    }
  }

  /** Adds a waiter after get() returned null. The waiter is called once, later, unless it leaves. */
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
    // Handshakes that left meanwhile have removed themselves from the waiters. A failure is reported when the source's turn comes.
    const goOn = (): void => {
      if (source.waiters === null || this.#isStopped) return;
      this.#queue.add(source);
      this.#wakeUp();
    };
    source.making?.then(goOn, goOn);
  }

  /** Removes a handshake that waits for a TLS context. A certificate without waiting handshakes leaves the queue. */
  leave(source: ContextSource, waiter: ContextWaiter): void {
    source.waiters?.delete(waiter);
    if (source.waiters?.size !== 0) return;
    source.waiters = null;
    this.#queue.delete(source);
  }

  /** Evicts a context. Handshakes that already wait for the context are still served, because the name was valid when they arrived. */
  drop(source: ContextSource): void {
    this.#ready.delete(source);
  }

  /** Rotates the key of TLS session tickets, once a day. */
  renewTickets(keys: Buffer): void {
    for (const source of this.#ready.keys()) {
      if (source.context === null || renewTicketKeys(source.context, keys)) continue;
      // Node's internals have changed: the context is dropped, and created again on demand.
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
    this.#nextMs = nowMs + 1000 / this.#options.perSecond;
    const context = createSecureContext(source.options());
    source.context = context;
    this.#ready.set(source, context);
    return context;
  }

  #wakeUp(): void {
    const { clock } = this.#options;
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
      // Another handshake may have created the TLS context in the meantime.
      context = source.context ?? this.#make(source, this.#options.clock.monotonic());
    } catch (error) {
      for (const waiter of waiters) waiter.onBroken(error);
      return;
    }
    for (const waiter of waiters) waiter.onContext(context);
  }
}

const isMade = ({ making }: ContextSource): boolean => making === undefined || making === null;
