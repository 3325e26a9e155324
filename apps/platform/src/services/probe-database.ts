// Does the database answer, within a second? Probes that come while one is under way share it.
import type { Clock } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';

export class DatabaseProbe {
  readonly #db: Db;
  readonly #clock: Clock;
  #underWay: Promise<boolean> | null = null;

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async isWell(): Promise<boolean> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = null;
    });
    return this.#withinLimit(this.#underWay);
  }

  async #ask(): Promise<boolean> {
    try {
      await sql`select 1`.execute(this.#db);
      return true;
    } catch {
      // Whatever it is: a database that cannot say 1 is of no use.
      return false;
    }
  }

  async #withinLimit(answer: Promise<boolean>): Promise<boolean> {
    let giveUp = (): void => {};
    const late = new Promise<boolean>((resolve) => {
      giveUp = () => resolve(false);
    });
    const timer = this.#clock.setTimeout(giveUp, PLATFORM_BOUNDS.DATABASE_PROBE_MS);
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
    }
  }
}
