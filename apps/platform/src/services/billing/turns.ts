// Turns in one process: one holder for each key, so many holders in all, first come first served.
import type { Clock, Timer } from '@tunnel/runtime';

export interface TurnsOptions {
  readonly clock: Clock;
  readonly atOnce: number;
  readonly waitMs: number;
  /** What somebody who waited too long is told. */
  readonly tooLate: () => Error;
}

interface Waiter {
  readonly key: string;
  readonly begin: () => void;
}

export class Turns {
  readonly #options: TurnsOptions;
  readonly #held = new Set<string>();
  #waiting: Waiter[] = [];

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** What to call when the turn is over. */
  async take(key: string): Promise<() => void> {
    if (!this.#isFree(key)) await this.#wait(key);
    else this.#held.add(key);
    return () => this.#end(key);
  }

  #isFree(key: string): boolean {
    return !this.#held.has(key) && this.#held.size < this.#options.atOnce;
  }

  #wait(key: string): Promise<void> {
    const { clock, waitMs, tooLate } = this.#options;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const waiter = {
        key,
        begin: () => {
          timer?.cancel();
          resolve();
        },
      };
      timer = clock.setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        reject(tooLate());
      }, waitMs);
      this.#waiting.push(waiter);
    });
  }

  #end(key: string): void {
    this.#held.delete(key);
    const next = this.#waiting.find((waiter) => this.#isFree(waiter.key));
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((other) => other !== next);
    this.#held.add(next.key);
    next.begin();
  }
}
