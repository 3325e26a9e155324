// Periodic jobs, each run by one platform process at a time. A failed job is logged and runs again after its interval; a job still
// running is not started a second time.
import type { Timer } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import { DatabaseAway } from '../db/database-away.ts';
import type { Schema } from '../db/schema.ts';
import type { ServiceContext } from '../services/shared/service-context.ts';

export type JobContext = Pick<ServiceContext, 'db' | 'clock' | 'logger'>;

export interface Job {
  readonly name: string;
  readonly everyMs: number;
  /** Delay of the first run. Default: `everyMs`. */
  readonly firstAfterMs?: number;
  readonly run: (context: JobContext) => Promise<void>;
}

/** First half of the advisory lock key: 'jb' in ASCII. The second half is the number of the job. */
const JOB_LOCKS = 0x6a62;

/** Runs the work in a transaction that holds the job's lock. Returns null without running the work if another process holds the lock. */
export const withJobLock = async <T>(
  db: Db,
  lock: number,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T | null> =>
  db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ mine: boolean }>`
      select pg_try_advisory_xact_lock(${JOB_LOCKS}::int, ${lock}::int) as mine
    `.execute(trx);
    return rows[0]?.mine === true ? work(trx) : null;
  });

export class Jobs {
  readonly #context: JobContext;
  readonly #jobs: readonly Job[];
  readonly #running = new Map<Job, Promise<void>>();
  readonly #timers = new Map<Job, Timer>();

  constructor(context: JobContext, jobs: readonly Job[]) {
    this.#context = context;
    this.#jobs = jobs;
  }

  start(): void {
    for (const job of this.#jobs) this.#plan(job, job.firstAfterMs ?? job.everyMs);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#running.values());
  }

  #plan(job: Job, inMs: number): void {
    const begin = (): void => {
      this.#plan(job, job.everyMs);
      if (!this.#running.has(job)) this.#begin(job);
    };
    this.#timers.set(job, this.#context.clock.setTimeout(begin, inMs));
  }

  #begin(job: Job): void {
    const run = job
      .run(this.#context)
      .catch((error: unknown) => this.#failed(job, error))
      .finally(() => this.#running.delete(job));
    this.#running.set(job, run);
  }

  #failed(job: Job, error: unknown): void {
    const { logger } = this.#context;
    // The database watch already logs an unavailable database.
    if (error instanceof DatabaseAway) logger.debug({ job: job.name }, 'a job is waiting for the database');
    else logger.error({ job: job.name, err: error }, 'a job failed');
  }
}
