// A clock whose timers can be held back: a program that runs on it does nothing new while it is frozen, as a stopped process would.
import type { Clock, Timer } from '@tunnel/runtime';

export class FreezingClock implements Clock {
  readonly #clock: Clock;
  readonly #due = new Set<() => void>();
  #isFrozen = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimeout(run: () => void, ms: number): Timer {
    const timer = this.#clock.setTimeout(() => (this.#isFrozen ? void this.#due.add(run) : run()), ms);
    return {
      cancel: () => {
        timer.cancel();
        this.#due.delete(run);
      },
    };
  }

  /** Ticks that fall into a frozen time are left out. */
  setInterval(run: () => void, ms: number): Timer {
    return this.#clock.setInterval(() => void (this.#isFrozen || run()), ms);
  }

  /** Timers that became due while it was frozen run when that ends. */
  freeze(isFrozen: boolean): void {
    this.#isFrozen = isFrozen;
    while (!this.#isFrozen && this.#due.size > 0) {
      const [run] = this.#due;
      if (run === undefined) return;
      this.#due.delete(run);
      run();
    }
  }
}
