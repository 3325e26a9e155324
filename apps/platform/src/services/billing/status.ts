// Billing status of an account and the cost of its month, read only from the database, so that the status is available while the payment
// processor is down.
import type { BillingStatus, BillingUsage } from '@tunnel/contract';
import { isLoopbackHost } from '@tunnel/rules/net';
import { estimateCents, isPayg, monthOf, usageCents } from '../../billing/rules/rating.rules.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';

/** Query for an account with its plan and its usage in a month. */
const monthOfAccount = (db: ServiceContext['db'], userId: string, month: string) =>
  db
    .selectFrom('users')
    .innerJoin('plans as plan', 'plan.name', 'users.plan')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'users.id').on('usage.month', '=', month),
    )
    .where('users.id', '=', userId);

/**
 * Returns the billing status of an account, read only from the database, so that the status is available while the payment processor is
 * down.
 */
export const showStatus = async (
  { db, clock, settings }: Pick<ServiceContext, 'db' | 'clock' | 'settings'>,
  { userId }: UserActor,
): Promise<BillingStatus> => {
  const row = await monthOfAccount(db, userId, monthOf(clock.now()))
    .leftJoin('billing_accounts as account', 'account.user_id', 'users.id')
    .select([
      'plan.name',
      'plan.price_cents_per_gb',
      'plan.monthly_minimum_cents',
      'plan.allow_custom_subdomains',
      'account.customer_id',
      'account.has_payment_method',
      'account.card_brand as brand',
      'account.card_last4 as last4',
      'account.subscription_status',
      'account.current_period_end',
      'account.spend_cap_cents',
      'usage.bytes',
    ])
    .executeTakeFirstOrThrow();
  const rates = { priceCentsPerGb: row.price_cents_per_gb, minimumCents: row.monthly_minimum_cents };
  return {
    billing_model: isPayg(rates) ? 'payg' : 'free',
    plan_name: row.name,
    estimated_mtd_cents: estimateCents({ ...rates, bytes: row.bytes ?? 0 }),
    spend_cap_cents: row.spend_cap_cents,
    subscription_status: row.subscription_status,
    current_period_end: row.current_period_end?.toISOString() ?? null,
    payment_customer_id: row.customer_id,
    has_payment_method: row.has_payment_method ?? false,
    allow_custom_subdomains: row.allow_custom_subdomains,
    monthly_minimum_cents: row.monthly_minimum_cents,
    payment_method: row.brand === null || row.last4 === null ? null : { brand: row.brand, last4: row.last4 },
    ...billingModeOf(settings),
  };
};

/**
 * Billing flags for the dashboard. The simulator charges no money, so on a public platform its billing would mislead users, and the
 * dashboard hides it.
 */
const billingModeOf = ({
  billing,
  public_url,
}: ServiceContext['settings']): { test_mode: boolean; hidden: boolean } => {
  const isSimulated = billing.processor === 'simulator';
  return { test_mode: isSimulated, hidden: isSimulated && !isLoopbackHost(new URL(public_url).hostname) };
};

/** Name of the plan of subscribed accounts. */
const SUBSCRIBED_PLAN = 'payg';

/** Returns the figures behind the month's estimated cost, read only from the database, like the status. */
export const showUsage = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
): Promise<BillingUsage> => {
  const month = monthOf(clock.now());
  const row = await monthOfAccount(db, userId, month)
    .leftJoin('plans as subscribed', (on) => on.on('subscribed.name', '=', SUBSCRIBED_PLAN))
    .select([
      'plan.price_cents_per_gb as price',
      'plan.monthly_minimum_cents as minimum',
      'subscribed.price_cents_per_gb as subscribedPrice',
      'subscribed.monthly_minimum_cents as subscribedMinimum',
      'usage.bytes',
    ])
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
