// Ends expired names: a held name not used for its hold time is released, and a released name is deleted after its grace period.
import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import { LIMITS } from '../limits.ts';
import { type NameSettings, rulesFor } from '../services/names/name-rows.ts';
import { announceChanges } from '../services/shared/edge-changes.ts';
import { type Job, withJobLock } from './jobs.ts';

/** Interval between searches for expired names. */
export const NAMES_EVERY_MS = 60_000;

const LOCK = 5;

type Trx = Transaction<Schema>;
type Step = (trx: Trx, settings: NameSettings, now: number) => Promise<number>;

export const endNames = (settings: NameSettings): Job => ({
  name: 'end names',
  everyMs: NAMES_EVERY_MS,
  run: async ({ db, clock, logger }) => {
    let ended = 0;
    for (const step of [endHeld, endNeverServed, endReleased, endWildcards]) {
      for (;;) {
        const rows = (await withJobLock(db, LOCK, (trx) => step(trx, settings, clock.now()))) ?? 0;
        ended += rows;
        if (rows < LIMITS.NAMES_ROWS) break;
      }
    }
    if (ended > 0) logger.debug({ names: ended }, 'expired names were released');
  },
});

/** SQL condition: no open tunnel serves the name. */
const IDLE = sql`not exists (select from tunnel_log where name_id = names.id and unregistered_at is null)`;

/**
 * Locks some expired names and returns their ids. The caller checks IDLE again in a second statement, because only a new statement sees a
 * tunnel opened between check and lock. A name is skipped while a tunnel is being opened on it.
 */
const lockOver = async (trx: Trx, isOver: RawBuilder<unknown>): Promise<readonly string[]> => {
  const { rows } = await sql<{ id: string }>`
    select id from names where ${isOver} and ${IDLE} limit ${LIMITS.NAMES_ROWS} for update skip locked
  `.execute(trx);
  return rows.map(({ id }) => id);
};

const remove = async (trx: Trx, isOver: RawBuilder<unknown>): Promise<number> => {
  const ids = await lockOver(trx, isOver);
  if (ids.length > 0) await sql`delete from names where id = any(${ids}::uuid[]) and ${IDLE}`.execute(trx);
  return ids.length;
};

const endHeld: Step = async (trx, settings, now) => {
  const { holdMs, assignedHoldMs } = rulesFor('subdomain', settings);
  const isOver = sql`
    state = 'held' and (
      last_used_at <= ${new Date(now - holdMs)} or (assigned and last_used_at <= ${new Date(now - assignedHoldMs)})
    )`;
  if (holdMs === 0) return remove(trx, isOver);
  const ids = await lockOver(trx, isOver);
  if (ids.length === 0) return 0;
  // `released_at` is the time when the hold ended, not the time of this run.
  await sql`
    update names set state = 'released', group_key_hash = null,
      released_at = last_used_at
        + case when assigned then ${assignedHoldMs / 1000}::float8 else ${holdMs / 1000}::float8 end * interval '1 second'
    where id = any(${ids}::uuid[]) and ${IDLE}
  `.execute(trx);
  return ids.length;
};

/** Deletes names claimed for a tunnel that the edge could not place. */
const endNeverServed: Step = (trx, _settings, now) =>
  remove(trx, sql`state = 'held' and last_used_at is null and created_at < ${new Date(now - NAMES_EVERY_MS)}`);

const endReleased: Step = (trx, settings, now) => {
  const before = new Date(now - rulesFor('subdomain', settings).graceMs);
  return remove(
    trx,
    sql`
      state = 'released' and (released_at <= ${before} or released_at is null)
      and coalesce(released_at, last_used_at, created_at) <= ${before}`,
  );
};

/** Releases a reserved wildcard such as `*.shop` if the account has lost the name `shop`. */
const endWildcards: Step = async (trx, _settings, now) => {
  const { rows } = await sql<{ label: string }>`
    with over as (
      select id from names as wildcard
      where label like '*.%' and state = 'reserved' and not exists (
        select from names as owner
        where owner.kind = 'subdomain' and owner.region_id = '' and owner.label = substr(wildcard.label, 3)
          and owner.user_id = wildcard.user_id and owner.state <> 'released'
      )
      limit ${LIMITS.NAMES_ROWS} for update skip locked
    )
    update names set state = 'released', group_key_hash = null, released_at = ${new Date(now)}
    from over where names.id = over.id returning names.label
  `.execute(trx);
  await announceChanges(
    trx,
    rows.map(({ label }) => ({ kind: 'name-changed', name: { kind: 'subdomain', regionId: '', label } })),
  );
  return rows.length;
};
