// An attempt shared by several callers: callers that arrive during an attempt wait for its result instead of starting a new attempt.

interface Attempt<T> {
  readonly made: Promise<T>;
  readonly abort: AbortController;
  waiting: number;
  isRunning: boolean;
}

export interface SingleFlightOptions {
  /** Keeps a successful result for later callers. Only a failed attempt is repeated, by the next caller. */
  readonly keepsResult?: boolean;
}

export class SingleFlight<T> {
  readonly #make: (signal: AbortSignal) => Promise<T>;
  readonly #keepsResult: boolean;
  #current: Attempt<T> | null = null;

  /** `make` must end soon after its signal is aborted, which happens when the last caller has left. */
  constructor(make: (signal: AbortSignal) => Promise<T>, { keepsResult = false }: SingleFlightOptions = {}) {
    this.#make = make;
    this.#keepsResult = keepsResult;
  }

  /** The running attempt shared by callers, or the kept result. Null if there is neither. */
  get current(): Promise<T> | null {
    return this.#current?.made ?? null;
  }

  /** Settles like the attempt. A caller with an aborted signal leaves and gets the signal's reason. */
  run(signal?: AbortSignal): Promise<T> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    this.#current ??= this.#begin();
    const attempt = this.#current;
    // Counts the caller. A caller without a signal never leaves the attempt.
    attempt.waiting += 1;
    return signal === undefined ? attempt.made : this.#untilLeft(attempt, signal);
  }

  async #untilLeft(attempt: Attempt<T>, signal: AbortSignal): Promise<T> {
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
      if (attempt.waiting === 0 && attempt.isRunning) this.#abandon(attempt);
    }
  }

  #begin(): Attempt<T> {
    const abort = new AbortController();
    const attempt: Attempt<T> = { made: this.#make(abort.signal), abort, waiting: 0, isRunning: true };
    const end = (isKept: boolean): void => {
      attempt.isRunning = false;
      if (!isKept) this.#forget(attempt);
    };
    attempt.made.then(
      () => end(this.#keepsResult),
      () => end(false),
    );
    return attempt;
  }

  /** Forgets the attempt, so that the next caller begins a new attempt without waiting for the end of the old. */
  #abandon(attempt: Attempt<T>): void {
    this.#forget(attempt);
    attempt.abort.abort();
  }

  #forget(attempt: Attempt<T>): void {
    if (this.#current === attempt) this.#current = null;
  }
}
