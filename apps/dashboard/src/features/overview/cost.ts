// The cost of this month in words. Pure.
import type { BillingStatus, BillingUsage } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';
import { moneyText } from '../../ui/format.ts';
import { capShare, capTone } from '../billing/month.ts';

export type CostFacts = Pick<
  BillingStatus,
  'billing_model' | 'estimated_mtd_cents' | 'spend_cap_cents' | 'monthly_minimum_cents' | 'subscription_status'
>;

/** The cap is on usage alone: what the minimum adds does not count toward it. */
export type UsedFacts = Pick<BillingUsage, 'usage_cents'>;

export interface CostView {
  readonly note: string;
  /** Of the cap; null: there is none, or the usage is not known. */
  readonly share: number | null;
  readonly tone: Tone;
}

export const viewCost = (facts: CostFacts, used: UsedFacts | undefined): CostView => {
  const { billing_model, spend_cap_cents: cap } = facts;
  if (billing_model === 'free') return { note: 'The free plan costs nothing', share: null, tone: 'neutral' };
  const share = cap === null || used === undefined ? null : capShare(used.usage_cents, cap);
  return { note: noteOf(facts, used), share, tone: share === null ? 'neutral' : capTone(share) };
};

const noteOf = (
  { estimated_mtd_cents, monthly_minimum_cents: minimum, spend_cap_cents: cap }: CostFacts,
  used?: UsedFacts,
) => {
  const usage = used === undefined ? '' : `usage ${moneyText(used.usage_cents)}, `;
  const least = estimated_mtd_cents <= minimum && minimum > 0 ? `minimum ${moneyText(minimum)}, ` : '';
  return `So far (UTC): ${usage}${least}${cap === null ? 'no cap' : `cap ${moneyText(cap)}`}`;
};
