// When a look-up may begin: so many at once, so many within a second, and a bounded number that waits in order.
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

  /** `begin` runs in its turn, maybe at once, and owes one `done`. false: too many wait, and nothing comes of it. */
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

  /** Look-ups that wait never begin. */
  close(): void {
    this.#turns.clear();
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** The next look-up begins when the second has room again. A place that another look-up holds is given by done(). */
  #wakeLater(): void {
    if (this.#turns.waiting === 0 || this.#turns.running >= this.#atOnce || this.#timer !== null) return;
    const waitMs = this.#begun.retryAfterMs(this.#clock.monotonic());
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = null;
        this.#turns.beginNext();
        this.#wakeLater();
      },
      // 0 as well: the second may have got room since the look-up was told to wait.
      Math.ceil(waitMs),
    );
  }
}

/** The owner of every turn: look-ups wait in a single line. */
const ALL = '';
