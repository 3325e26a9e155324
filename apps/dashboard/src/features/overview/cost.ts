// The cost of this month in words. Pure.
import type { BillingStatus } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { moneyText } from '../../ui/format.ts';

export type CostFacts = Pick<
  BillingStatus,
  'billing_model' | 'estimated_mtd_cents' | 'spend_cap_cents' | 'monthly_minimum_cents' | 'subscription_status'
>;

export interface CostView {
  readonly note: string;
  /** Of the cap; null: there is none, or the usage is below the minimum and not told. */
  readonly share: number | null;
  readonly tone: Tone;
}

/** From here on it is said. */
const NEAR = 0.8;

export const viewCost = (facts: CostFacts): CostView => {
  const { billing_model, estimated_mtd_cents: estimate, spend_cap_cents: cap, monthly_minimum_cents: minimum } = facts;
  if (billing_model === 'free') return { note: 'The free plan costs nothing', share: null, tone: 'neutral' };
  const words =
    estimate <= minimum ? `This month so far (UTC): the minimum of ${moneyText(minimum)}` : 'This month so far (UTC)';
  if (cap === null) return { note: `${words}; no spend cap`, share: null, tone: 'neutral' };
  // The cap is on usage: what the minimum adds does not count, and is not known from outside.
  const share = estimate <= minimum && cap > 0 ? null : shareOf(estimate, cap);
  return { note: `${words}; cap ${moneyText(cap)}`, share, tone: toneOf(share) };
};

const shareOf = (estimate: number, cap: number): number => (cap === 0 ? 1 : estimate / cap);

const toneOf = (share: number | null): Tone => {
  if (share === null || share < NEAR) return 'accent';
  return share >= 1 ? 'bad' : 'warn';
};
