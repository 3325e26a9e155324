// The cost of a month: how near the cap is, and all of it in words. Pure.
import type { BillingStatus, BillingUsage } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { moneyText } from '../../ui/format.ts';

const BYTES_PER_GB = 1e9;

export type Prices = Pick<BillingUsage, 'price_cents_per_gb' | 'monthly_minimum_cents'>;

/** What the minimum pays for. */
export const coveredBytes = ({ price_cents_per_gb: price, monthly_minimum_cents: minimum }: Prices): number =>
  price === 0 ? 0 : (minimum / price) * BYTES_PER_GB;

/** Of a cap: 0 to 1 and above; a cap of 0 is reached from the start. */
export const capShare = (usageCents: number, capCents: number): number => (capCents === 0 ? 1 : usageCents / capCents);

/** Mails are sent from here on too. */
const NEAR = 0.8;

export const capTone = (share: number): 'accent' | 'warn' | 'bad' => {
  if (share >= 1) return 'bad';
  return share >= NEAR ? 'warn' : 'accent';
};

export type CostStatus = Pick<
  BillingStatus,
  'billing_model' | 'estimated_mtd_cents' | 'spend_cap_cents' | 'monthly_minimum_cents' | 'subscription_status'
>;

/** The cap is on usage alone: what the minimum adds does not count toward it. */
export type CostUsage = Pick<BillingUsage, 'usage_cents'>;

interface CostView {
  readonly note: string;
  /** Of the cap; null: there is none, or the usage is not known. */
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
