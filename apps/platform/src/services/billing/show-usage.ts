// What the estimate of the month is made of: from the tables alone, as the status.
import type { BillingUsage } from '@tunnel/contract';
import { isPayg, monthOf, usageCents } from '@tunnel/core';
import type { ServiceContext, UserActor } from '../service-context.ts';

/** What subscribing leads to. */
const SUBSCRIBED_PLAN = 'payg';

export const showUsage = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
): Promise<BillingUsage> => {
  const month = monthOf(clock.now());
  const row = await db
    .selectFrom('users')
    .innerJoin('plans as plan', 'plan.name', 'users.plan')
    .leftJoin('plans as subscribed', (on) => on.on('subscribed.name', '=', SUBSCRIBED_PLAN))
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'users.id').on('usage.month', '=', month),
    )
    .select([
      'plan.price_cents_per_gb as price',
      'plan.monthly_minimum_cents as minimum',
      'subscribed.price_cents_per_gb as subscribedPrice',
      'subscribed.monthly_minimum_cents as subscribedMinimum',
      'usage.bytes',
    ])
    .where('users.id', '=', userId)
    .executeTakeFirstOrThrow();
  const pays = isPayg({ priceCentsPerGb: row.price });
  const bytes = pays ? (row.bytes ?? 0) : 0;
  return {
    month,
    metered_bytes: bytes,
    usage_cents: usageCents(bytes, row.price),
    price_cents_per_gb: pays ? row.price : (row.subscribedPrice ?? 0),
    monthly_minimum_cents: pays ? row.minimum : (row.subscribedMinimum ?? 0),
  };
};
