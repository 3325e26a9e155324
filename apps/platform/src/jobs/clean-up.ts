// Deletes what nobody will ask for again: expired tokens, mails and webhooks that were dealt with, old changes and answers.
import { sql } from 'kysely';
import type { Db } from '../db/database.ts';
import { LIMITS } from '../limits.ts';
import { type Job, withJobLock } from './jobs.ts';

const LOCK = 2;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Longer than any token lives: a session without one is over. */
const SESSION_KEPT_DAYS = 31;

interface CleanUp {
  readonly table:
    | 'refresh_tokens'
    | 'mail_tokens'
    | 'refresh_families'
    | 'mail_outbox'
    | 'edge_changes'
    | 'processor_events'
    | 'idempotency_keys'
    | 'meter_events';
  /** ctid: where the row lies, for a table whose key has two columns. */
  readonly key: 'token_hash' | 'id' | 'identifier' | 'ctid';
  /** Which rows, by the time before which they are old. */
  readonly keptDays: number;
  readonly old: (before: Date) => ReturnType<typeof sql>;
}

const CLEAN_UPS: readonly CleanUp[] = [
  // Those that were rotated stay until they expire: coming with one again is how a thief is noticed.
  { table: 'refresh_tokens', key: 'token_hash', keptDays: 0, old: (before) => sql`expires_at < ${before}` },
  { table: 'mail_tokens', key: 'token_hash', keptDays: 1, old: (before) => sql`expires_at < ${before}` },
  {
    table: 'refresh_families',
    key: 'id',
    keptDays: SESSION_KEPT_DAYS,
    old: (before) =>
      sql`last_used_at < ${before} and not exists (select from refresh_tokens where family_id = refresh_families.id)`,
  },
  {
    table: 'mail_outbox',
    key: 'id',
    keptDays: LIMITS.MAIL_KEPT_DAYS,
    old: (before) => sql`coalesce(sent_at, given_up_at) < ${before}`,
  },
  {
    // The newest stays whatever its age, so that the number of the latest change never falls.
    table: 'edge_changes',
    key: 'id',
    keptDays: LIMITS.CHANGES_KEPT_DAYS,
    old: (before) => sql`at < ${before} and id < (select max(id) from edge_changes)`,
  },
  {
    table: 'processor_events',
    key: 'id',
    keptDays: LIMITS.PROCESSOR_EVENTS_KEPT_DAYS,
    old: (before) => sql`received_at < ${before}`,
  },
  {
    table: 'idempotency_keys',
    key: 'ctid',
    keptDays: LIMITS.IDEMPOTENCY_KEPT_MS / DAY_MS,
    old: (before) => sql`created_at < ${before}`,
  },
  {
    // One that was not taken stays whatever its age.
    table: 'meter_events',
    key: 'identifier',
    keptDays: LIMITS.METER_EVENTS_KEPT_DAYS,
    old: (before) => sql`sent_at < ${before}`,
  },
];

export const cleanUp: Job = {
  name: 'clean up',
  everyMs: LIMITS.CLEAN_UP_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    for (const each of CLEAN_UPS) {
      const before = new Date(clock.now() - each.keptDays * DAY_MS);
      const rows = await deleteAll(db, each, before);
      if (rows > 0) logger.debug({ table: each.table, rows }, 'old rows were deleted');
    }
  },
};

/** A few at a time: no lock is held for long, and no statement runs into its time limit. */
const deleteAll = async (db: Db, each: CleanUp, before: Date): Promise<number> => {
  let total = 0;
  for (;;) {
    const deleted = (await withJobLock(db, LOCK, (trx) => deleteSome(trx, each, before))) ?? 0;
    total += deleted;
    if (deleted < LIMITS.CLEAN_UP_ROWS) return total;
  }
};

const deleteSome = async (db: Db, { table, key, old }: CleanUp, before: Date): Promise<number> => {
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where ${sql.ref(key)} in (
      select ${sql.ref(key)} from ${sql.table(table)}
      where ${old(before)} limit ${LIMITS.CLEAN_UP_ROWS} for update skip locked
    )`.execute(db);
  return Number(numAffectedRows ?? 0);
};
