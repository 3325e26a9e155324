// Queues for tasks that must not run concurrently.

export interface SerialOptions {
  /** Maximum number of tasks in the queue behind the running task. */
  readonly maxWaiting: number;
  /** Creates the error for a task that does not fit into the queue. */
  readonly full: () => Error;
}

/** Runs tasks one after the other in order of arrival. A failed task does not stop the next task. */
export class SerialQueue {
  readonly #options: SerialOptions;
  /** Waiting tasks of the queue. Each function begins a task and resolves when the task has ended. */
  readonly #waiting = new Set<() => Promise<void>>();
  #working: Promise<void> | null = null;
  #tasks = 0;

  constructor(options: SerialOptions) {
    this.#options = options;
  }

  /**
   * Settles like the task. A waiting task with an aborted signal is dropped and rejects with the reason. A running task must handle the
   * signal.
   */
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

  /** Resolves when all tasks queued so far have ended. Never rejects. */
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
    // Tasks never begin inside run(), so that the caller finishes its synchronous work first.
    await Promise.resolve();
    for (const begin of this.#waiting) {
      this.#waiting.delete(begin);
      await begin();
    }
    this.#working = null;
  }
}

/**
 * Repeats the same work, one run at a time. Calls during a run share the next run, which sees all earlier changes. So at most one run
 * waits, regardless of the number of callers.
 */
export class SerialRuns<T> {
  readonly #work: () => Promise<T>;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | null = null;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  /** Settles like the run that begins after this call. A failed run does not stop the next run. */
  run(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  /** Resolves when all runs requested so far have ended. Never rejects. */
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
