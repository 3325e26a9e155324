// Deletes rows older than their retention time. The times are defined in db/retention.ts.
import type { ServerConfig } from '@tunnel/config/server';
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import { DatabaseAway } from '../db/database-away.ts';
import { oldBefore, RETENTION, type Retention } from '../db/retention.ts';
import type { Schema } from '../db/schema.ts';
import { LIMITS } from '../limits.ts';
import { type Job, withJobLock } from './jobs.ts';

/** Interval between cleanups of rows past their retention time. */
const CLEAN_UP_EVERY_MS = 10 * 60_000;

const LOCK = 2;

type KeptForDays = Extract<Retention, { days: unknown }>;
type CleanUp = KeptForDays & { readonly table: string };

const CLEAN_UPS: readonly CleanUp[] = Object.entries(RETENTION).flatMap(([table, kept]) =>
  'days' in kept ? [{ table, ...kept }] : [],
);

export const cleanUp = (settings: ServerConfig['platform']['retention']): Job => ({
  name: 'clean up',
  everyMs: CLEAN_UP_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    const failures: unknown[] = [];
    for (const each of CLEAN_UPS) {
      const now = clock.now();
      const before = oldBefore(each, settings, now);
      if (before === null) continue;
      try {
        const rows = await deleteAll(db, each, each.old(before, new Date(now)));
        if (rows > 0) logger.debug({ table: each.table, rows }, 'old rows were deleted');
      } catch (error) {
        // A table that cannot be cleaned up does not stop the cleanup of the other tables.
        if (error instanceof DatabaseAway) throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  },
});

/** Deletes the old rows of a table in batches, so that no lock is held for long and no statement reaches its time limit. */
const deleteAll = async (db: Db, each: CleanUp, isOld: RawBuilder<unknown>): Promise<number> => {
  let total = 0;
  for (;;) {
    const deleted = (await withJobLock(db, LOCK, (trx) => deleteSome(trx, each, isOld))) ?? 0;
    total += deleted;
    if (deleted < LIMITS.CLEAN_UP_ROWS) return total;
  }
};

const deleteSome = async (
  trx: Transaction<Schema>,
  { table, key, appendOnly }: CleanUp,
  isOld: RawBuilder<unknown>,
): Promise<number> => {
  if (appendOnly === true) await sql`select set_config('tunnel.retention', 'on', true)`.execute(trx);
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where ${sql.ref(key)} in (
      select ${sql.ref(key)} from ${sql.table(table)}
      where ${isOld} limit ${LIMITS.CLEAN_UP_ROWS} for update skip locked
    )`.execute(trx);
  return Number(numAffectedRows ?? 0);
};
