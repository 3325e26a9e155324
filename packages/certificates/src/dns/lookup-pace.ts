// When a look-up may begin: so many at once, so many within a second, and a bounded number that waits in order.
import type { Clock, Timer } from '@tunnel/runtime';

export interface LookupPaceRules {
  readonly atOnce: number;
  readonly perSecond: number;
  readonly waitingMax: number;
}

const SECOND_MS = 1000;

export class LookupPace {
  readonly #rules: LookupPaceRules;
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Of the last second, oldest first. */
  readonly #begun: number[] = [];
  #running = 0;
  #timer: Timer | null = null;

  constructor(rules: LookupPaceRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /** `begin` runs in its turn, maybe at once, and owes one `done`. false: too many wait, and nothing comes of it. */
  enter(begin: () => void): boolean {
    if (this.#waiting.length >= this.#rules.waitingMax) return false;
    this.#waiting.push(begin);
    this.#advance();
    return true;
  }

  done(): void {
    this.#running -= 1;
    this.#advance();
  }

  /** Those that wait never begin. */
  close(): void {
    this.#waiting.length = 0;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #advance(): void {
    const { atOnce, perSecond } = this.#rules;
    while (this.#waiting.length > 0 && this.#running < atOnce) {
      const now = this.#clock.monotonic();
      while (this.#begun.length > 0 && now - (this.#begun[0] as number) >= SECOND_MS) this.#begun.shift();
      if (this.#begun.length >= perSecond) return this.#wakeAt((this.#begun[0] as number) + SECOND_MS - now);
      this.#begun.push(now);
      this.#running += 1;
      this.#waiting.shift()?.();
    }
  }

  #wakeAt(ms: number): void {
    this.#timer ??= this.#clock.setTimeout(() => {
      this.#timer = null;
      this.#advance();
    }, Math.ceil(ms));
  }
}
