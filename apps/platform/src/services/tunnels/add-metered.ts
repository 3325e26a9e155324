// Adds to the metered usage of those who pay for it: what a batch carried since their subscription began, by month.
import { billingMonth } from '@tunnel/core';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import type { UsedBytes } from './entry-changes.ts';

/**
 * In the transaction of the daily sums, and after them: nobody locks the two in another order. Whether a record counts is decided
 * by its own time, so that what was used before the subscription is never billed, however late it is told.
 */
export const addMetered = async (trx: Transaction<Schema>, used: readonly UsedBytes[], now: number): Promise<void> => {
  if (used.length === 0) return;
  const column = <T>(of: (record: UsedBytes) => T): T[] => used.map(of);
  await sql`
    insert into metered_usage (user_id, month, bytes)
    select told.user_id, told.month, sum(told.bytes)::bigint
    from unnest(
      ${column((record) => record.userId)}::uuid[],
      ${column((record) => monthOfBill(record.at, now))}::text[],
      ${column((record) => record.at.toISOString())}::timestamptz[],
      ${column((record) => record.bytes)}::bigint[]
    ) as told (user_id, month, at, bytes)
    join billing_accounts on billing_accounts.user_id = told.user_id and told.at >= billing_accounts.metered_from
    join users on users.id = told.user_id
    join plans on plans.name = users.plan and plans.price_cents_per_gb > 0
    group by told.user_id, told.month
    order by told.user_id, told.month
    on conflict (user_id, month) do update set bytes = metered_usage.bytes + excluded.bytes
  `.execute(trx);
};

const monthOfBill = (at: Date, now: number): string => billingMonth(at.getTime(), now, PLATFORM_BOUNDS.MONTH_LATE_MS);
