// A mutex per key within a process: one holder per key, a limited number of holders in total, first come first served.
import type { Clock, Timer } from '../clock.ts';

export interface KeyedMutexOptions {
  readonly clock: Pick<Clock, 'setTimeout'>;
  /** Maximum number of mutex keys held at the same time. */
  readonly atOnce: number;
  /** Maximum number of callers waiting for a key of the mutex. */
  readonly maxWaiting: number;
  /** Maximum time that a caller waits for its key of the mutex. */
  readonly waitMs: number;
  /** Creates the error for a caller that waited too long, or that arrives when too many callers wait. */
  readonly busy: () => Error;
}

interface Waiter {
  readonly key: string;
  readonly begin: () => void;
}

export class KeyedMutex {
  readonly #options: KeyedMutexOptions;
  readonly #held = new Set<string>();
  readonly #waiting = new Set<Waiter>();

  constructor(options: KeyedMutexOptions) {
    this.#options = options;
  }

  /** Runs the work as the only holder of the key. A caller with an aborted signal stops waiting and gets the signal's reason. */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#isFree(key)) this.#held.add(key);
    else await this.#wait(key, signal);
    try {
      return await work();
    } finally {
      this.#end(key);
    }
  }

  #isFree(key: string): boolean {
    return !this.#held.has(key) && this.#held.size < this.#options.atOnce;
  }

  #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { clock, maxWaiting, waitMs, busy } = this.#options;
    if (this.#waiting.size >= maxWaiting) return Promise.reject(busy());
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const stop = (): void => {
        timer?.cancel();
        signal?.removeEventListener('abort', leave);
        this.#waiting.delete(waiter);
      };
      const leave = (): void => {
        stop();
        reject(signal?.reason as Error);
      };
      const waiter: Waiter = {
        key,
        begin: () => {
          stop();
          resolve();
        },
      };
      timer = clock.setTimeout(() => {
        stop();
        reject(busy());
      }, waitMs);
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.add(waiter);
    });
  }

  #end(key: string): void {
    this.#held.delete(key);
    for (const waiter of this.#waiting) {
      if (!this.#isFree(waiter.key)) continue;
      this.#held.add(waiter.key);
      waiter.begin();
      return;
    }
  }
}
