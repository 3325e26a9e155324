// Meter events in the database. Usage is cut into events; an event is claimed for a limited time, then marked as sent or as waiting for a
// retry.

import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { monthOf } from '../rules/rating.rules.ts';

/** Maximum number of usage rows cut into events by one statement. */
const METER_CUT_ROWS = 1000;
/** Maximum number of meter events claimed at once. */
const METER_BATCH = 20;
/** Duration of a claim, during which no other process takes the event. Longer than the time limit of the call that reports the event. */
const METER_CLAIM_MS = 6000;
/**
 * Time after the end of a month in which usage can still be reported for the month. The processor finalizes the month's invoice an hour
 * after the end; later usage goes on the next invoice.
 */
const METER_MONTH_OPEN_MS = 55 * 60_000;

export interface CutOrder {
  readonly now: number;
  /** Cuts the usage of one account only, and waits for locked rows instead of skipping them. */
  readonly userId?: string;
}

/**
 * Turns metered usage into meter events and returns the number of new events. Usage of an account and month not cut yet becomes one
 * event, in a single statement, so that every byte is in exactly one event, however many processes run the function and wherever a
 * process dies.
 */
export const cutUsage = async (db: Db, order: CutOrder): Promise<number> => {
  let total = 0;
  for (;;) {
    const cut = await cutSome(db, order);
    total += cut;
    if (cut < METER_CUT_ROWS) return total;
  }
};

/**
 * Cuts the usage of some accounts. A month with an unsent event is skipped: after a day's outage of the processor, one event per account
 * is waiting, not a thousand. Accounts without a customer at the processor are skipped, because their usage cannot be reported.
 */
const cutSome = async (db: Db, { now, userId }: CutOrder): Promise<number> => {
  const at = new Date(now);
  const { numAffectedRows } = await sql`
    with due as (
      select usage.user_id, usage.month, usage.bytes - usage.cut_bytes as bytes
      from metered_usage usage
      where usage.bytes > usage.cut_bytes
        and ${userId === undefined ? sql`true` : sql`usage.user_id = ${userId}`}
        and exists (select from billing_accounts account where account.user_id = usage.user_id and account.customer_id is not null)
        and not exists (
          select from meter_events event
          where event.user_id = usage.user_id and event.month = usage.month and event.sent_at is null
        )
      order by usage.user_id, usage.month
      limit ${METER_CUT_ROWS}
      for update of usage ${userId === undefined ? sql`skip locked` : sql``}
    ), cut as (
      update metered_usage usage
      set cut_bytes = usage.cut_bytes + due.bytes, cuts = usage.cuts + 1
      from due
      where usage.user_id = due.user_id and usage.month = due.month
      returning usage.user_id, usage.month, usage.cuts, due.bytes
    )
    insert into meter_events (identifier, user_id, month, bytes, occurred_at, created_at, next_try_at)
    select
      user_id || '-' || month || '-' || cuts, user_id, month, bytes,
      least(${at}::timestamptz, ((month || '-01')::timestamp + interval '1 month') at time zone 'UTC' - interval '1 millisecond'),
      ${at}, ${at}
    from cut
  `.execute(db);
  return Number(numAffectedRows ?? 0);
};

export interface ClaimedEvent {
  readonly identifier: string;
  readonly userId: string;
  readonly customerId: string;
  readonly month: string;
  readonly bytes: number;
  /** Time of the usage as reported to the payment processor. */
  readonly at: number;
  /** Number of attempts to report the event, including the current attempt. */
  readonly attempts: number;
  /** Time when the first attempt began. Null if the current attempt is the first. */
  readonly triedAt: number | null;
}

export interface Claim {
  readonly now: number;
  /** Claims the events of one account only, whether due or not. */
  readonly userId?: string;
}

/**
 * Returns the oldest month still open at the payment processor. Usage of an earlier month must be reported with the current time, because
 * the month is closed.
 */
export const openFrom = (now: number): string => monthOf(now - METER_MONTH_OPEN_MS);

interface ClaimedRow {
  readonly identifier: string;
  readonly user_id: string;
  readonly customer_id: string;
  readonly month: string;
  readonly bytes: number;
  readonly occurred_at: Date;
  readonly attempts: number;
  readonly tried_at: Date | null;
}

/**
 * Claims unsent events not claimed by another process, longest-waiting first. Several platform processes can do so at the same time. The
 * start of an attempt is recorded before the attempt, so that a process that dies meanwhile leaves a trace.
 */
export const claimEvents = async (db: Db, { now, userId }: Claim): Promise<ClaimedEvent[]> => {
  const at = new Date(now);
  const { rows } = await sql<ClaimedRow>`
    with due as (
      select event.identifier, event.first_tried_at as tried_at, account.customer_id
      from meter_events event join billing_accounts account using (user_id)
      where event.sent_at is null and account.customer_id is not null
        and (event.claimed_until is null or event.claimed_until <= ${at})
        and ${userId === undefined ? sql`event.next_try_at <= ${at}` : sql`event.user_id = ${userId}`}
      order by event.next_try_at, event.identifier
      limit ${METER_BATCH}
      for update of event skip locked
    )
    update meter_events event
    set attempts = event.attempts + 1,
      claimed_until = ${new Date(now + METER_CLAIM_MS)},
      first_tried_at = coalesce(event.first_tried_at, ${at}),
      occurred_at = case
        when event.first_tried_at is null and event.month < ${openFrom(now)} then ${at}::timestamptz
        else event.occurred_at
      end
    from due
    where event.identifier = due.identifier
    returning event.identifier, event.user_id, due.customer_id, event.month, event.bytes, event.occurred_at, event.attempts, due.tried_at
  `.execute(db);
  return rows.map((row) => ({
    identifier: row.identifier,
    userId: row.user_id,
    customerId: row.customer_id,
    month: row.month,
    bytes: row.bytes,
    at: row.occurred_at.getTime(),
    attempts: row.attempts,
    triedAt: row.tried_at === null ? null : row.tried_at.getTime(),
  }));
};

/** Records that the processor does not have the event. The next attempt counts as a first attempt, with the given time of usage. */
export const noteFirstTry = async (db: Db, event: ClaimedEvent, now: number, at: number): Promise<void> => {
  await db
    .updateTable('meter_events')
    .set({
      first_tried_at: new Date(now),
      occurred_at: new Date(at),
      claimed_until: new Date(now + METER_CLAIM_MS),
    })
    .where('identifier', '=', event.identifier)
    .where('attempts', '=', event.attempts)
    .execute();
};

/** Marks an event as sent, even if another process has claimed it meanwhile: the processor has accepted the event in any case. */
export const noteSent = async (db: Db, { identifier }: ClaimedEvent, now: number): Promise<void> => {
  await db
    .updateTable('meter_events')
    .set({ sent_at: new Date(now), claimed_until: null })
    .where('identifier', '=', identifier)
    .where('sent_at', 'is', null)
    .execute();
};

/** Schedules a retry of an event, unless another process has claimed the event since. */
export const noteRetry = async (db: Db, { identifier, attempts }: ClaimedEvent, at: number): Promise<void> => {
  await db
    .updateTable('meter_events')
    .set({ next_try_at: new Date(at), claimed_until: null })
    .where('identifier', '=', identifier)
    .where('attempts', '=', attempts)
    .where('sent_at', 'is', null)
    .execute();
};

export const countWaiting = async (db: Db, userId: string): Promise<number> => {
  const { rows } = await sql<{ waiting: number }>`
    select count(*) as waiting from meter_events where user_id = ${userId} and sent_at is null
  `.execute(db);
  return rows[0]?.waiting ?? 0;
};
