// Clock for tests. The time advances only on command.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '@tunnel/runtime';

interface FakeTimer {
  dueAt: number;
  readonly order: number;
  readonly everyMs: number | null;
  readonly run: () => void;
}

export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  readonly #timers = new Set<FakeTimer>();

  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimeout(run: () => void, ms: number): Timer {
    return this.#add(run, ms, null);
  }

  setInterval(run: () => void, ms: number): Timer {
    // With an interval of 0, advance() would never end.
    return this.#add(run, ms, Math.max(1, ms));
  }

  /** Number of waiting timers. A value of 0 at the end of a test proves that no timer was left behind. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Runs every timer due within `ms`, in the order of due times. Pending promises settle before the next timer runs. */
  async advance(ms: number): Promise<void> {
    const target = this.#monotonic + ms;
    await nextTurn();
    for (let timer = this.#nextDue(target); timer !== null; timer = this.#nextDue(target)) {
      this.#moveTo(timer.dueAt);
      if (timer.everyMs === null) this.#timers.delete(timer);
      else timer.dueAt += timer.everyMs;
      timer.run();
      // One turn of the event loop settles pending promises, however long the chain of promises is.
      await nextTurn();
    }
    this.#moveTo(target);
  }

  /** Sets the wall clock, like NTP or an operator. Timers and monotonic() are unaffected. */
  setWallClock(now: number): void {
    this.#now = now;
  }

  #add(run: () => void, ms: number, everyMs: number | null): Timer {
    this.#order += 1;
    const timer: FakeTimer = { dueAt: this.#monotonic + Math.max(0, ms), order: this.#order, everyMs, run };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  #nextDue(target: number): FakeTimer | null {
    let first: FakeTimer | null = null;
    for (const timer of this.#timers) {
      if (timer.dueAt > target) continue;
      const earlier =
        first === null || timer.dueAt < first.dueAt || (timer.dueAt === first.dueAt && timer.order < first.order);
      if (earlier) first = timer;
    }
    return first;
  }

  #moveTo(monotonic: number): void {
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }
}
