// Lifecycle of a process: ordered start and stop of its parts, and the signals that end it.
import { type Clock, systemClock, type Timer } from '../clock.ts';
import type { Logger } from '../logger/logger.ts';

export interface LifecyclePart {
  readonly name: string;
  start?(): Promise<void>;
  stop?(): Promise<void>;
}

interface LifecycleOptions {
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** Time limit for stopping the started parts after a later part failed to start. */
const FAILED_START_STOP_MS = 10_000;
/** Time that every remaining part still gets after the deadline, for example to flush its last data. */
const LATE_GRACE_MS = 250;

// idle -> starting -> running -> stopping -> stopped. A failed or interrupted start goes from starting to stopping.
type State = 'idle' | 'starting' | 'running' | 'stopping' | 'stopped';

export class Lifecycle {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #parts: LifecyclePart[] = [];
  readonly #started: LifecyclePart[] = [];
  #state: State = 'idle';
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: LifecycleOptions) {
    this.#logger = options.logger;
    this.#clock = options.clock ?? systemClock;
  }

  add(part: LifecyclePart): void {
    if (this.#state !== 'idle') throw new Error(`part ${part.name} was added after the start`);
    this.#parts.push(part);
  }

  /** Starts the parts in order of addition. On failure stops the started parts in reverse order and rethrows. */
  start(): Promise<void> {
    if (this.#state !== 'idle') return Promise.reject(new Error(`cannot start: the lifecycle is ${this.#state}`));
    this.#state = 'starting';
    this.#starting = this.#startParts();
    return this.#starting;
  }

  /** Stops the started parts in reverse order. Never rejects; later calls return the promise of the first. */
  stop(options: { readonly deadlineMs: number }): Promise<void> {
    this.#stopping ??= this.#stopParts(options.deadlineMs);
    return this.#stopping;
  }

  async #startParts(): Promise<void> {
    for (const part of this.#parts) {
      try {
        await part.start?.();
      } catch (error) {
        // A concurrent stop waits for this start, so waiting for the stop would deadlock.
        if (this.#stopping === undefined) {
          this.#starting = undefined;
          await this.stop({ deadlineMs: FAILED_START_STOP_MS });
        }
        throw error;
      }
      await this.#afterPartStarted(part);
    }
    this.#state = 'running';
  }

  async #afterPartStarted(part: LifecyclePart): Promise<void> {
    // The stop gave up waiting for this part, so it must be stopped here.
    if (this.#state === 'stopped') await this.#stopPart(part, this.#clock.monotonic());
    else this.#started.push(part);
    if (this.#stopping !== undefined) throw new Error('stopped while starting');
  }

  async #stopParts(deadlineMs: number): Promise<void> {
    const deadline = this.#clock.monotonic() + deadlineMs;
    const starting = this.#state === 'starting' ? this.#starting : undefined;
    this.#state = 'stopping';
    // A part that is starting must be waited for, because a partial start cannot be stopped.
    if (starting !== undefined)
      await this.#within(
        starting.catch(() => undefined),
        deadline,
      );
    for (let part = this.#started.pop(); part !== undefined; part = this.#started.pop()) {
      await this.#stopPart(part, deadline);
    }
    this.#state = 'stopped';
  }

  async #stopPart(part: LifecyclePart, deadline: number): Promise<void> {
    if (part.stop === undefined) return;
    try {
      const finished = await this.#within(part.stop(), deadline);
      if (!finished) this.#logger.warn({ part: part.name }, 'component did not stop in time');
    } catch (error) {
      this.#logger.error({ part: part.name, err: error }, 'component failed to stop');
    }
  }

  /** Returns true if the work settled before the deadline or within the grace time. */
  async #within(work: Promise<void>, deadline: number): Promise<boolean> {
    let timer: Timer | undefined;
    const late = new Promise<'late'>((resolve) => {
      const left = Math.max(deadline - this.#clock.monotonic(), LATE_GRACE_MS);
      timer = this.#clock.setTimeout(() => resolve('late'), left);
    });
    try {
      return (await Promise.race([work, late])) !== 'late';
    } finally {
      timer?.cancel();
      // A failure after the deadline cannot be reported and must not end the process.
      work.catch(() => undefined);
    }
  }
}

// Signals of the process: the first requests an orderly stop, a later signal an immediate exit.

interface SignalOptions {
  readonly signals: readonly NodeJS.Signals[];
  /** Signals within this time count as one, because under npm a Ctrl-C arrives twice. */
  readonly sameWithinMs: number;
  readonly onFirst: (signal: NodeJS.Signals) => void;
  readonly onSecond: (signal: NodeJS.Signals) => void;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Emitter of process signals, such as `process`. */
  readonly source: SignalSource;
}

export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/** Listens for the rest of the process's life, because a late repeated signal would otherwise kill the process. */
export const onSignals = (options: SignalOptions): void => {
  const { clock, source } = options;
  let firstAt: number | undefined;
  let secondSeen = false;

  const listener = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = clock.monotonic();
      options.onFirst(signal);
    } else if (!secondSeen && clock.monotonic() - firstAt > options.sameWithinMs) {
      secondSeen = true;
      options.onSecond(signal);
    }
  };

  for (const signal of options.signals) source.on(signal, listener);
};
