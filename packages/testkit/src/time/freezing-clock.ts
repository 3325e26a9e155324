// Clock with timers that can be held back. While the clock is frozen, a program that uses the clock does nothing new, like a stopped
// process.
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

  /** Starts an interval timer. Ticks are skipped while the clock is frozen. */
  setInterval(run: () => void, ms: number): Timer {
    return this.#clock.setInterval(() => void (this.#isFrozen || run()), ms);
  }

  /** Freezes or resumes the clock. Timeouts that became due while frozen run when the clock resumes. */
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
