// Texts and figures about the cost of the current month, such as the used share of the spend limit. Pure functions.
import type { BillingStatus, BillingUsage } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { moneyText } from '../../ui/format.ts';

const BYTES_PER_GB = 1e9;

export type Prices = Pick<BillingUsage, 'price_cents_per_gb' | 'monthly_minimum_cents'>;

/** Returns the traffic in bytes that is covered by the monthly minimum. */
export const coveredBytes = ({ price_cents_per_gb: price, monthly_minimum_cents: minimum }: Prices): number =>
  price === 0 ? 0 : (minimum / price) * BYTES_PER_GB;

/** Returns the used share of the spend limit: 1 at the limit, more above the limit. A limit of 0 is reached from the start. */
export const capShare = (usageCents: number, capCents: number): number => (capCents === 0 ? 1 : usageCents / capCents);

/** Used share of the spend limit that turns the display to a warning. The platform also sends an email at this share. */
const NEAR = 0.8;

export const capTone = (share: number): 'accent' | 'warn' | 'bad' => {
  if (share >= 1) return 'bad';
  return share >= NEAR ? 'warn' : 'accent';
};

export type CostStatus = Pick<
  BillingStatus,
  'billing_model' | 'estimated_mtd_cents' | 'spend_cap_cents' | 'monthly_minimum_cents' | 'subscription_status'
>;

/** Usage cost without the monthly minimum, because the spend limit applies to usage only. */
export type CostUsage = Pick<BillingUsage, 'usage_cents'>;

interface CostView {
  readonly note: string;
  /** Used share of the spend limit. Null without a limit, on the free plan, or if the usage is unknown. */
  readonly share: number | null;
  readonly tone: Tone;
}

export const viewCost = (status: CostStatus, used: CostUsage | undefined): CostView => {
  const { billing_model, spend_cap_cents: cap } = status;
  if (billing_model === 'free') return { note: 'The free plan has no charges', share: null, tone: 'neutral' };
  const share = cap === null || used === undefined ? null : capShare(used.usage_cents, cap);
  return { note: noteOf(status, used), share, tone: share === null ? 'neutral' : capTone(share) };
};

const noteOf = (
  { estimated_mtd_cents, monthly_minimum_cents: minimum, spend_cap_cents: cap }: CostStatus,
  used?: CostUsage,
) => {
  const usage = used === undefined ? '' : `usage ${moneyText(used.usage_cents)}, `;
  const least = estimated_mtd_cents <= minimum && minimum > 0 ? `minimum ${moneyText(minimum)}, ` : '';
  return `So far (UTC): ${usage}${least}${cap === null ? 'no limit' : `limit ${moneyText(cap)}`}`;
};
