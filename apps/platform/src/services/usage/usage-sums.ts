// Usage calculated from daily sums: per day, and for the last 30 days.
import { SUMMARY_DAYS, type UsageChartPoint, type UsageSummary } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import { lastUtcDays } from '../../billing/rules/rating.rules.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';

/**
 * Returns the number of open tunnels and the usage of the last 30 days. Reads daily sums and an index of open entries, so the cost does
 * not grow with the log of the account or with other accounts.
 */
export const summarizeUsage = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
): Promise<UsageSummary> => {
  const days = lastUtcDays(clock.now(), SUMMARY_DAYS);
  const { rows } = await sql<UsageSummary>`
    select open.active_tunnels, sums.total_tunnels_30d, sums.total_requests_30d, sums.total_bytes_30d,
      plans.name as plan, plans.tunnel_limit, plans.reserved_limit, plans.domain_limit
    from users
    join plans on plans.name = users.plan
    cross join lateral (
      select count(*) as active_tunnels from tunnel_log
      where tunnel_log.user_id = users.id and unregistered_at is null
    ) as open
    cross join lateral (
      select coalesce(sum(tunnels), 0)::bigint as total_tunnels_30d,
        coalesce(sum(requests), 0)::bigint as total_requests_30d,
        coalesce(sum(bytes), 0)::bigint as total_bytes_30d
      from usage_daily
      where usage_daily.user_id = users.id and day between ${days[0]}::date and ${days.at(-1)}::date
    ) as sums
    where users.id = ${userId}`.execute(db);
  const [summary] = rows;
  // The account was deleted between the check of the token and this query.
  if (summary === undefined) throw new Fault('ACCESS_TOKEN_INVALID');
  return summary;
};

/** Returns the usage per day, with a point for every day of the window. */
export const chartUsage = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
  count: number,
): Promise<UsageChartPoint[]> => {
  const days = lastUtcDays(clock.now(), count);
  const rows = await db
    .selectFrom('usage_daily')
    .select(['day', 'tunnels', 'requests', 'bytes'])
    .where('user_id', '=', userId)
    .where('day', '>=', days[0] ?? '')
    .where('day', '<=', days.at(-1) ?? '')
    .execute();
  const byDay = new Map(rows.map(({ day, ...sums }) => [day, sums]));
  return days.map((date) => ({ date, ...(byDay.get(date) ?? { tunnels: 0, requests: 0, bytes: 0 }) }));
};
