// Clock that runs faster than the system clock, for tests over real sockets. With a factor of 30, a time limit of 30 s passes in a
// second. Real sockets do not become faster, so each real millisecond counts as `factor` milliseconds: choose limits and factors that
// leave enough time for the work under test. If a test needs the product's real limits, for example because of a busy database, use a
// clock with factor 1, and speed up time only while no work is in progress: `await clock.pass(40_000, 20)`.
import type { Clock, Timer } from '@tunnel/runtime';

export class FastClock implements Clock {
  readonly #startWall: number;
  readonly #rearm = new Set<() => void>();
  #factor: number;
  /** Time of the last change of speed, on this clock and on the system clock. */
  #since = { monotonic: 0, real: performance.now() };

  /** Creates a clock that runs `factor` times as fast as the system clock, starting at `startMs` (default: now). */
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

  /**
   * Runs `factor` times as fast as the system clock until `ms` milliseconds have passed on this clock, then returns to the previous
   * speed.
   */
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
   * Runs a function when monotonic() has reached the given time. Timers of Node.js may fire up to a millisecond early, which would be
   * `factor` milliseconds on this clock, so a timer that fires early is started again.
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
