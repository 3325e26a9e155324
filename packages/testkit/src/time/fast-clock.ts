// A clock that runs faster than the system clock, for tests over real sockets: with a factor of 30, a time limit of 30 s passes in a
// second. Real sockets do not get faster, so each real millisecond of the machine counts as `factor` milliseconds here: choose limits and
// factors so that the work under test still has time. A test whose work needs the limits of the product (a busy database, say) takes a clock
// of factor 1, and lets time pass fast only while nothing is under way: `await clock.pass(40_000, 20)`.
import type { Clock, Timer } from '@tunnel/runtime';

export class FastClock implements Clock {
  readonly #startWall: number;
  readonly #rearm = new Set<() => void>();
  #factor: number;
  /** The time on this clock when it last changed its speed, and the system's at that moment. */
  #since = { monotonic: 0, real: performance.now() };

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
    return this.#since.monotonic + (performance.now() - this.#since.real) * this.#factor;
  }

  /** Runs `factor` times as fast as the system clock until so many milliseconds have passed on this clock; then as before. */
  async pass(ms: number, factor: number): Promise<void> {
    const before = this.#factor;
    this.#setFactor(factor);
    await new Promise<void>((resolve) => void this.setTimeout(resolve, ms));
    this.#setFactor(before);
  }

  #setFactor(factor: number): void {
    this.#since = { monotonic: this.monotonic(), real: performance.now() };
    this.#factor = factor;
    for (const rearm of this.#rearm) rearm();
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
    let handle: NodeJS.Timeout | undefined;
    const cancel = (): void => {
      clearTimeout(handle);
      this.#rearm.delete(arm);
    };
    const fire = (): void => {
      if (this.monotonic() < dueAt) return arm();
      cancel();
      run();
    };
    const arm = (): void => {
      clearTimeout(handle);
      handle = setTimeout(fire, (dueAt - this.monotonic()) / this.#factor);
    };
    this.#rearm.add(arm);
    arm();
    return { cancel };
  }
}
