// The time as the database has it: what several processes share is measured by one clock, whatever their machines say.
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

  /** How far the database is ahead of this machine. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Until it is called, and while the database does not answer, what was known before holds. */
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
