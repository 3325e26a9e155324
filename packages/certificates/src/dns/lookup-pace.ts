// Limits DNS lookups: concurrency, rate per second, and a bounded queue.
import { FairTurns, SlidingWindow } from '@tunnel/rules/rate';
import type { Clock, Timer } from '@tunnel/runtime';

export interface LookupPaceRules {
  readonly atOnce: number;
  readonly perSecond: number;
  readonly waitingMax: number;
}

export class LookupPace {
  readonly #atOnce: number;
  readonly #clock: Clock;
  readonly #begun: SlidingWindow;
  readonly #turns: FairTurns;
  #timer: Timer | null = null;

  constructor({ atOnce, perSecond, waitingMax }: LookupPaceRules, clock: Clock) {
    this.#atOnce = atOnce;
    this.#clock = clock;
    this.#begun = new SlidingWindow({ perWindow: perSecond, windowMs: 1000 });
    const mayBegin = (): boolean => this.#turns.running < atOnce && this.#begun.hasRoom(clock.monotonic());
    this.#turns = new FairTurns({ waitingMax, standing: () => (mayBegin() ? 'begin' : 'wait') });
  }

  /** Calls `begin` when a slot is free, possibly at once; one `done` must follow. Returns false if the queue is full. */
  enter(begin: () => void): boolean {
    const isIn = this.#turns.enter({
      owner: ALL,
      begin: () => {
        this.#begun.record(this.#clock.monotonic());
        begin();
      },
      giveWay: () => {},
    });
    this.#wakeLater();
    return isIn;
  }

  done(): void {
    this.#turns.done();
    this.#wakeLater();
  }

  /** Stops the limiter and drops the queued lookups. */
  close(): void {
    this.#turns.clear();
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Begins the next lookup when the rate allows. A slot held by a running lookup is released by done(). */
  #wakeLater(): void {
    if (this.#turns.waiting === 0 || this.#turns.running >= this.#atOnce || this.#timer !== null) return;
    const waitMs = this.#begun.retryAfterMs(this.#clock.monotonic());
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = null;
        this.#turns.beginNext();
        this.#wakeLater();
      },
      // The timer is needed even for a wait of 0, because the rate may have allowed a lookup since the last attempt.
      Math.ceil(waitMs),
    );
  }
}

/** Common owner of all DNS lookups, because they share a single queue. */
const ALL = '';
