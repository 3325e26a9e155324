import { expect, it } from 'vitest';
import { type CostStatus, capShare, capTone, coveredBytes, viewCost } from './cost.ts';

it('the monthly minimum is converted to the traffic it covers', () => {
  expect(coveredBytes({ monthly_minimum_cents: 300, price_cents_per_gb: 10 })).toBe(30e9);
  expect(coveredBytes({ monthly_minimum_cents: 300, price_cents_per_gb: 0 })).toBe(0);
});

it('a spend cap is reached at its amount, and a cap of zero at once', () => {
  const shares = [capShare(300, 500), capShare(400, 500), capShare(500, 500), capShare(600, 500), capShare(0, 0)];
  expect(shares).toEqual([0.6, 0.8, 1, 1.2, 1]);
  expect(shares.map(capTone)).toEqual(['accent', 'warn', 'bad', 'bad', 'bad']);
});

const payg = (more: Partial<CostStatus>): CostStatus => ({
  billing_model: 'payg',
  estimated_mtd_cents: 300,
  spend_cap_cents: null,
  monthly_minimum_cents: 300,
  subscription_status: 'active',
  ...more,
});
const used = (usage_cents: number) => ({ usage_cents });

it('the free plan shows no charges', () => {
  const free = payg({ billing_model: 'free', estimated_mtd_cents: 0 });
  expect(viewCost(free, used(0))).toEqual({ note: 'The free plan has no charges', share: null, tone: 'neutral' });
});

it('the spend cap is compared with the usage and not with the monthly minimum', () => {
  expect(viewCost(payg({ spend_cap_cents: 200 }), used(20))).toEqual({
    note: 'So far (UTC): usage $0.20, minimum $3.00, limit $2.00',
    share: 0.1,
    tone: 'accent',
  });
});

it('the share of the spend cap is empty while the usage is unknown', () => {
  expect(viewCost(payg({ spend_cap_cents: 200 }), undefined)).toMatchObject({ share: null, tone: 'neutral' });
});

it('the cost card warns near the spend cap and turns red when it is reached', () => {
  const capped = payg({ estimated_mtd_cents: 1700, spend_cap_cents: 2000 });
  expect(viewCost(capped, used(1700)).tone).toBe('warn');
  expect(viewCost(capped, used(2100)).tone).toBe('bad');
  expect(viewCost(payg({ spend_cap_cents: 0 }), used(0))).toMatchObject({ share: 1, tone: 'bad' });
});

it('the cost card says that there is no limit without a spend cap', () => {
  const view = viewCost(payg({ estimated_mtd_cents: 900 }), used(900));
  expect(view).toEqual({ note: 'So far (UTC): usage $9.00, no limit', share: null, tone: 'neutral' });
});
