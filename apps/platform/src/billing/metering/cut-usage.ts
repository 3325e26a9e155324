// Turns metered usage into meter events: what was not cut yet becomes one event, in one statement, so that each byte is in
// exactly one event however many processes do this and wherever one of them dies.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';

export interface CutOrder {
  readonly now: number;
  /** Of one account alone; its rows are then waited for. */
  readonly userId?: string;
}

/** How many events there are now that were not there before. */
export const cutUsage = async (db: Db, order: CutOrder): Promise<number> => {
  let total = 0;
  for (;;) {
    const cut = await cutSome(db, order);
    total += cut;
    if (cut < PLATFORM_BOUNDS.METER_CUT_ROWS) return total;
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
      limit ${PLATFORM_BOUNDS.METER_CUT_ROWS}
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
