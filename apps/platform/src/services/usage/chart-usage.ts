// Usage by day, every day of the window with a point of its own.
import type { UsageChartPoint } from '@tunnel/contract';
import { lastUtcDays } from '@tunnel/core';
import type { ServiceContext, UserActor } from '../service-context.ts';

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
