// Does the database answer, within a second? Probes that come while one is under way share it.
import type { Clock } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { within } from '../within.ts';

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
    return within(this.#clock, this.#underWay, PLATFORM_BOUNDS.DATABASE_PROBE_MS).catch(() => false);
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
}
