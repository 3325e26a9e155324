// Work that must not run twice at the same time.

export interface SerialOptions {
  /** Number of tasks that can wait behind the running one. */
  readonly maxWaiting: number;
  /** The error for a task beyond that number. */
  readonly full: () => Error;
}

/** Runs different tasks one after the other, in the order in which they came. A task that fails does not stop the next one. */
export class SerialQueue {
  readonly #options: SerialOptions;
  /** Each begins one task, and settles when the task has ended. */
  readonly #waiting = new Set<() => Promise<void>>();
  #working: Promise<void> | null = null;
  #tasks = 0;

  constructor(options: SerialOptions) {
    this.#options = options;
  }

  /** Settles as the task does. A task whose signal is aborted while it waits is dropped, and rejects with the reason. A running task handles its signal itself. */
  async run<T>(task: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#tasks > this.#options.maxWaiting) throw this.#options.full();
    this.#tasks += 1;
    try {
      return await this.#enqueue(task, signal);
    } finally {
      this.#tasks -= 1;
    }
  }

  /** Settles when every task that was given before has ended. Never rejects. */
  async settled(): Promise<void> {
    if (this.#working !== null) await this.#enqueue(() => {});
  }

  #enqueue<T>(task: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const begin = async (): Promise<void> => {
        signal?.removeEventListener('abort', leave);
        try {
          resolve(await task());
        } catch (error) {
          reject(error as Error);
        }
      };
      const leave = (): void => {
        this.#waiting.delete(begin);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.add(begin);
      this.#working ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    // Tasks never begin inside run(): the caller finishes its own work first.
    await Promise.resolve();
    for (const begin of this.#waiting) {
      this.#waiting.delete(begin);
      await begin();
    }
    this.#working = null;
  }
}

/**
 * Runs the same work again and again, one run at a time. Calls that arrive during a run share the next one, which sees everything that was done before them. So no more
 * than one run waits, however many callers there are.
 */
export class SerialRuns<T> {
  readonly #work: () => Promise<T>;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | null = null;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  /** Settles as the run does that begins after this call. A run that fails does not stop the next one. */
  run(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  /** Settles when every run that was asked for before has ended. Never rejects. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #begin(): Promise<T> {
    const next = this.#last.then(() => {
      this.#next = null;
      return this.#work();
    });
    this.#last = next.catch(() => {});
    return next;
  }
}
