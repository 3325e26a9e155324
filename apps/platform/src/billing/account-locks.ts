// Locks per account, across the platform processes. A process that reads an account at the payment processor writes the result before
// another process reads the account.
import { Fault } from '@tunnel/errors';
import { type Clock, KeyedMutex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Schema } from '../db/schema.ts';

/** First half of the advisory lock key: 'ba' in ASCII. The second half is a hash of the account's id. */
const ACCOUNT_LOCKS = 0x6261;
const LOCK_NOT_AVAILABLE = '55P03';
/** Maximum number of accounts locked at the same time, and of requests waiting for a lock. A locked account needs a database connection. */
const ACCOUNTS = { atOnce: 6, maxWaiting: 1000 } as const;
/** Time limit for the payment processor's response while an account is locked. */
const HELD_MS = 60_000;
/**
 * Maximum time for which a request waits for an earlier request of the same account.
 * @limit accounts: Billing request, time to wait for an earlier request of the account | 503 `BILLING_BUSY`
 */
const WAIT_MS = 15_000;
/** Retry time sent to a caller rejected with BILLING_BUSY. */
const RETRY_AFTER_SECS = 2;

export interface AccountLocksOptions {
  readonly db: Db;
  readonly clock: Clock;
  /** Maximum wait for the account's lock. */
  readonly waitMs?: number;
}

export class AccountLocks {
  readonly #db: Db;
  readonly #waitMs: number;
  readonly #mutex: KeyedMutex;

  constructor({ db, clock, waitMs = WAIT_MS }: AccountLocksOptions) {
    this.#db = db;
    this.#waitMs = waitMs;
    // Requests wait in memory first. A request waiting for the lock in the database would hold a connection, and many such requests would
    // exhaust the pool.
    this.#mutex = new KeyedMutex({ clock, ...ACCOUNTS, waitMs, busy });
  }

  /**
   * Runs the work with the account locked, in one transaction. The work must call the payment processor first, while no row is locked,
   * and write afterwards. The work must not use a second database connection. Rejects with BILLING_BUSY if the lock is not available in
   * time.
   */
  async hold<T>(userId: string, work: (trx: Transaction<Schema>) => Promise<T>): Promise<T> {
    return this.#mutex.run(userId, () =>
      this.#db.transaction().execute(async (trx) => {
        await this.#lock(trx, userId);
        return work(trx);
      }),
    );
  }

  async #lock(trx: Transaction<Schema>, userId: string): Promise<void> {
    await sql`
      select set_config('idle_in_transaction_session_timeout', ${String(HELD_MS)}, true),
        set_config('lock_timeout', ${String(this.#waitMs)}, true)
    `.execute(trx);
    try {
      await sql`select pg_advisory_xact_lock(${ACCOUNT_LOCKS}::int, hashtext(${userId}))`.execute(trx);
    } catch (error) {
      throw (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE ? busy() : error;
    }
  }
}

const busy = (): Fault => new Fault('BILLING_BUSY', { seconds: RETRY_AFTER_SECS });
