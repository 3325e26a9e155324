// A clock that runs faster than the system clock, for tests over real sockets: with a factor of 30, a time limit of 30 s passes in a
// second. Real sockets do not get faster, so each real millisecond of the machine counts as `factor` milliseconds here: choose limits and
// factors so that the work under test still has time.
import type { Clock, Timer } from '@tunnel/runtime';

export class FastClock implements Clock {
  readonly #factor: number;
  readonly #startWall: number;
  readonly #startReal = performance.now();

  /** Runs `factor` times as fast as the system clock, beginning at `startMs` (by default the present). */
  constructor(factor: number, startMs = Date.now()) {
    if (!(factor >= 1)) throw new RangeError(`a FastClock needs a factor of at least 1, not ${factor}`);
    this.#factor = factor;
    this.#startWall = startMs;
  }

  now(): number {
    return Math.floor(this.#startWall + this.monotonic());
  }

  monotonic(): number {
    return (performance.now() - this.#startReal) * this.#factor;
  }

  setTimeout(run: () => void, ms: number): Timer {
    return this.#at(this.monotonic() + Math.max(0, ms), () => run());
  }

  setInterval(run: () => void, ms: number): Timer {
    let timer: Timer;
    let cancelled = false;
    const tick = (): void => {
      run();
      if (!cancelled) timer = this.setTimeout(tick, ms);
    };
    timer = this.setTimeout(tick, ms);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  /**
   * Runs it once monotonic() has reached the given time. Timers of Node.js may fire up to a millisecond early, which would be `factor`
   * milliseconds on this clock: such a timer is armed again.
   */
  #at(dueAt: number, run: () => void): Timer {
    let handle: NodeJS.Timeout;
    const arm = (): void => {
      handle = setTimeout(() => (this.monotonic() < dueAt ? arm() : run()), (dueAt - this.monotonic()) / this.#factor);
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  }
}
