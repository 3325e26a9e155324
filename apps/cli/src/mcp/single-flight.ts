// One attempt at something that several callers wait for: it is made once, and ends when the last of them has gone.

interface Attempt<T> {
  readonly made: Promise<T>;
  readonly abort: AbortController;
  waiting: number;
}

export class SingleFlight<T> {
  readonly #make: (signal: AbortSignal) => Promise<T>;
  #current: Attempt<T> | null = null;

  /** `make` is to end with its signal. */
  constructor(make: (signal: AbortSignal) => Promise<T>) {
    this.#make = make;
  }

  /** Rejects with the reason of `signal` as soon as that is aborted. */
  async take(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    this.#current ??= this.#begin();
    const attempt = this.#current;
    attempt.waiting += 1;
    let leave = (): void => {};
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => reject(signal.reason as Error);
      signal.addEventListener('abort', leave, { once: true });
    });
    try {
      return await Promise.race([attempt.made, left]);
    } finally {
      signal.removeEventListener('abort', leave);
      attempt.waiting -= 1;
      if (attempt.waiting === 0) attempt.abort.abort();
    }
  }

  #begin(): Attempt<T> {
    const abort = new AbortController();
    const attempt = { made: this.#make(abort.signal), abort, waiting: 0 };
    const forget = (): void => {
      if (this.#current === attempt) this.#current = null;
    };
    // Who comes after the last has gone begins a new one: this one is over, whatever becomes of it.
    abort.signal.addEventListener('abort', forget, { once: true });
    attempt.made.then(forget, forget);
    return attempt;
  }
}
