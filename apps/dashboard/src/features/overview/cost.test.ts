import { expect, it } from 'vitest';
import { type CostFacts, viewCost } from './cost.ts';

const payg = (more: Partial<CostFacts>): CostFacts => ({
  ...{ billing_model: 'payg', estimated_mtd_cents: 300, spend_cap_cents: null, monthly_minimum_cents: 300 },
  ...{ subscription_status: 'active', ...more },
});

it('a free plan costs nothing', () => {
  expect(viewCost(payg({ billing_model: 'free', estimated_mtd_cents: 0 }))).toMatchObject({ share: null });
});

it('below the minimum no share of the cap is made up', () => {
  expect(viewCost(payg({ spend_cap_cents: 2000 }))).toEqual({
    note: 'This month so far (UTC): the minimum of $3.00; cap $20.00',
    share: null,
    tone: 'accent',
  });
});

it('above it the cap comes nearer, and is reached', () => {
  expect(viewCost(payg({ estimated_mtd_cents: 1000, spend_cap_cents: 2000 }))).toMatchObject({ share: 0.5 });
  expect(viewCost(payg({ estimated_mtd_cents: 1700, spend_cap_cents: 2000 })).tone).toBe('warn');
  expect(viewCost(payg({ estimated_mtd_cents: 2100, spend_cap_cents: 2000 })).tone).toBe('bad');
  expect(viewCost(payg({ spend_cap_cents: 0 }))).toMatchObject({ share: 1, tone: 'bad' });
});

it('says so when there is no cap', () => {
  expect(viewCost(payg({ estimated_mtd_cents: 900 })).note).toBe('This month so far (UTC); no spend cap');
});
