// One at a time for each account, in all platform processes: whoever reads an account at the payment processor writes what it
// made of it before the next one reads.
import { Fault } from '@tunnel/errors';
import type { Clock, Timer } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Schema } from '../db/schema.ts';
import { LIMITS } from '../limits.ts';

/** Half of the lock's number; the other half is the account's. 'ba' in ASCII. */
const ACCOUNT_LOCKS = 0x6261;
const LOCK_NOT_AVAILABLE = '55P03';

export interface AccountLocksOptions {
  readonly db: Db;
  readonly clock: Clock;
  /** How long one waits for the others. */
  readonly waitMs?: number;
}

export class AccountLocks {
  readonly #db: Db;
  readonly #waitMs: number;
  readonly #mutex: KeyedMutex;

  constructor({ db, clock, waitMs = LIMITS.ACCOUNT_LOCK_WAIT_MS }: AccountLocksOptions) {
    this.#db = db;
    this.#waitMs = waitMs;
    // Here first: those who would wait in the database would each hold a connection, until none is left for anybody.
    this.#mutex = new KeyedMutex({ clock, atOnce: LIMITS.ACCOUNT_LOCKS_MAX, waitMs, tooLate: busy });
  }

  /**
   * The work asks the processor first, while no row is locked, and writes then, all in one transaction. It must not ask for a
   * second connection. Rejects with BILLING_BUSY when the others take too long.
   */
  async hold<T>(userId: string, work: (trx: Transaction<Schema>) => Promise<T>): Promise<T> {
    const end = await this.#mutex.acquire(userId);
    try {
      return await this.#db.transaction().execute(async (trx) => {
        await this.#lock(trx, userId);
        return work(trx);
      });
    } finally {
      end();
    }
  }

  async #lock(trx: Transaction<Schema>, userId: string): Promise<void> {
    const heldMs = LIMITS.ACCOUNT_LOCK_HELD_MS;
    await sql`
      select set_config('idle_in_transaction_session_timeout', ${String(heldMs)}, true),
        set_config('lock_timeout', ${String(this.#waitMs)}, true)
    `.execute(trx);
    try {
      await sql`select pg_advisory_xact_lock(${ACCOUNT_LOCKS}::int, hashtext(${userId}))`.execute(trx);
    } catch (error) {
      throw (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE ? busy() : error;
    }
  }
}

const busy = (): Fault => new Fault('BILLING_BUSY', { seconds: LIMITS.ACCOUNT_RETRY_AFTER_SECS });

export interface KeyedMutexOptions {
  readonly clock: Clock;
  readonly atOnce: number;
  readonly waitMs: number;
  /** What somebody who waited too long is told. */
  readonly tooLate: () => Error;
}

interface Waiter {
  readonly key: string;
  readonly begin: () => void;
}

/** A mutex in one process: one holder for each key, so many holders in all, first come first served. */
export class KeyedMutex {
  readonly #options: KeyedMutexOptions;
  readonly #held = new Set<string>();
  #waiting: Waiter[] = [];

  constructor(options: KeyedMutexOptions) {
    this.#options = options;
  }

  /** What to call when the turn is over. */
  async acquire(key: string): Promise<() => void> {
    if (!this.#isFree(key)) await this.#wait(key);
    else this.#held.add(key);
    return () => this.#end(key);
  }

  #isFree(key: string): boolean {
    return !this.#held.has(key) && this.#held.size < this.#options.atOnce;
  }

  #wait(key: string): Promise<void> {
    const { clock, waitMs, tooLate } = this.#options;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const waiter = {
        key,
        begin: () => {
          timer?.cancel();
          resolve();
        },
      };
      timer = clock.setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        reject(tooLate());
      }, waitMs);
      this.#waiting.push(waiter);
    });
  }

  #end(key: string): void {
    this.#held.delete(key);
    const next = this.#waiting.find((waiter) => this.#isFree(waiter.key));
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((other) => other !== next);
    this.#held.add(next.key);
    next.begin();
  }
}
