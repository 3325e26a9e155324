// Work that is done again and again, by one platform process at a time.
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Schema } from '../db/schema.ts';
import type { ServiceContext } from '../services/service-context.ts';

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
export const alone = async <T>(
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
