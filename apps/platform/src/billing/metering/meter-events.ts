// Meter events in the database: usage is cut into them, and they are claimed for a while, then noted as taken or to be tried again.

import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { monthOf } from '../rules/rating.rules.ts';

/** Accounts whose usage one statement cuts. */
const METER_CUT_ROWS = 1000;
/** Events that one run takes up. */
const METER_BATCH = 20;
/** An event that is being sent is not taken by another process for so long. Longer than its call. */
const METER_CLAIM_MS = 6000;
/** The processor finalises a month's invoice an hour after its end: usage reported later goes on the next one. */
const METER_MONTH_OPEN_MS = 55 * 60_000;

export interface CutOrder {
  readonly now: number;
  /** Of one account alone; its rows are then waited for. */
  readonly userId?: string;
}

/**
 * Turns metered usage into meter events: what was not cut yet becomes one event, in one statement, so that each byte is in
 * exactly one event however many processes do this and wherever one of them dies. How many events there are now that were not
 * there before.
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
 * A month with an event that was not taken yet is left alone: a processor that is away for a day leaves one event an account
 * behind and not a thousand. Only whoever has a customer at the processor can be reported.
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
  /** The time that the processor is told. */
  readonly at: number;
  /** This one included. */
  readonly attempts: number;
  /** When its first try began, if there was one before this. */
  readonly triedAt: number | null;
}

export interface Claim {
  readonly now: number;
  /** Of one account alone, whether they are due or not. */
  readonly userId?: string;
}

/**
 * Meter events as their sender sees them: claimed for a while, then noted as taken or as to be tried again. Several platform
 * processes may do this at once. That a try begins is written before it: whoever dies in it leaves a trace. A month before
 * this one is closed at the processor: what is reported now must carry a time of now.
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

/** Those that nobody else holds, the one that waits longest first. */
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

/** The processor does not have it: what follows is a first try again, with that time. */
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

/** Whoever holds it by now: that it was taken is true for all. */
export const noteSent = async (db: Db, { identifier }: ClaimedEvent, now: number): Promise<void> => {
  await db
    .updateTable('meter_events')
    .set({ sent_at: new Date(now), claimed_until: null })
    .where('identifier', '=', identifier)
    .where('sent_at', 'is', null)
    .execute();
};

/** Not if somebody else has claimed it since: then it is theirs. */
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
