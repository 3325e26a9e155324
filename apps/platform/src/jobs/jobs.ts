// Work that is done again and again, by one platform process at a time, at its pace. A job that fails is told of and comes again;
// one that takes long is not begun twice.
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
  /** When the first run comes; after `everyMs` unless told. */
  readonly firstAfterMs?: number;
  readonly run: (context: JobContext) => Promise<void>;
}

/** Half of the lock's number; the other half is the job's. 'jb' in ASCII. */
const JOB_LOCKS = 0x6a62;

/** Does it unless another process is doing it right now; then null. */
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
    // Whoever watches the database tells of that.
    if (error instanceof DatabaseAway) logger.debug({ job: job.name }, 'a job is waiting for the database');
    else logger.error({ job: job.name, err: error }, 'a job failed');
  }
}
