// A clock that follows the database's time. Several processes share one clock this way, even if the clocks of their machines differ.
import type { Clock, Timer } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from './database.ts';

export class DatabaseClock implements Clock {
  readonly #db: Db;
  readonly #clock: Clock;
  #aheadMs = 0;

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Milliseconds by which the database's clock is ahead of this machine's clock. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /**
   * Measures the difference between the clocks. Before the first call, and while the database is unavailable, the previous difference
   * applies.
   */
  async compare(): Promise<void> {
    const before = this.#clock.now();
    const { rows } = await sql<{ at: number }>`
      select (extract(epoch from clock_timestamp()) * 1000)::bigint as at
    `.execute(this.#db);
    const middle = (before + this.#clock.now()) / 2;
    this.#aheadMs = Math.round((rows[0]?.at ?? middle) - middle);
  }

  now(): number {
    return this.#clock.now() + this.#aheadMs;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimeout(fn: () => void, ms: number): Timer {
    return this.#clock.setTimeout(fn, ms);
  }

  setInterval(fn: () => void, ms: number): Timer {
    return this.#clock.setInterval(fn, ms);
  }
}
