// One at a time for each account, in all platform processes: whoever reads an account at the payment processor writes what it
// made of it before the next one reads.
import { Fault } from '@tunnel/errors';
import { type Clock, KeyedMutex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Schema } from '../db/schema.ts';

/** Half of the lock's number; the other half is the account's. 'ba' in ASCII. */
const ACCOUNT_LOCKS = 0x6261;
const LOCK_NOT_AVAILABLE = '55P03';
/** Accounts whose state at the processor is read and written at the same time, and requests that wait for one. Each held account needs a database connection. */
const ACCOUNTS = { atOnce: 6, maxWaiting: 1000 } as const;
/** How long the processor can take to answer while an account is held. */
const HELD_MS = 60_000;
/**
 * How long a request waits for another request of its account.
 * @limit accounts: Billing request, time to wait for an earlier request of the account | 503 `BILLING_BUSY`
 */
const WAIT_MS = 15_000;
/** When a caller that was refused should try again. */
const RETRY_AFTER_SECS = 2;

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

  constructor({ db, clock, waitMs = WAIT_MS }: AccountLocksOptions) {
    this.#db = db;
    this.#waitMs = waitMs;
    // Here first: those who would wait in the database would each hold a connection, until none is left for anybody.
    this.#mutex = new KeyedMutex({ clock, ...ACCOUNTS, waitMs, busy });
  }

  /**
   * The work asks the processor first, while no row is locked, and writes then, all in one transaction. It must not ask for a
   * second connection. Rejects with BILLING_BUSY when the others take too long.
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
