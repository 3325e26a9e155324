// Each field of BillingStatus and the parts of its estimate: for an account that never paid, for a paying account, and after changes.
import { billingUsage } from '@tunnel/contract';
import { beforeAll, expect, it } from 'vitest';
import { refusalOf } from '../platform/api-request.fixture.ts';
import type { Person } from '../platform/platform-harness.fixture.ts';
import { type BillingHarness, CENT, type Payer } from './billing-harness.fixture.ts';
import { row } from './rows.fixture.ts';

export const statusRows = (harness: BillingHarness): void => {
  let free: Person;
  let payer: Payer;
  beforeAll(async () => {
    [free, payer] = await Promise.all([harness.person(), harness.sharedPayer()]);
  });
  const both = async () => Promise.all([harness.billing(free), harness.billing(payer)]);

  it(row('BillingStatus', 1), async () => {
    expect((await both()).map((status) => status.billing_model)).toEqual(['free', 'payg']);
  });
  it(row('BillingStatus', 2), async () => {
    expect((await both()).map((status) => status.plan_name)).toEqual(['free', 'payg']);
  });
  it(row('BillingStatus', 3), async () => {
    expect((await both()).map((status) => status.estimated_mtd_cents)).toEqual([0, 300]);
  });
  it(row('BillingStatus', 4), async () => {
    const own = await harness.paygPerson();
    expect((await harness.billing(own)).spend_cap_cents).toBeNull();
    await harness.cap(own, { spend_cap_cents: 2000 });
    expect((await harness.billing(own)).spend_cap_cents).toBe(2000);
  });
  it(row('BillingStatus', 5), async () => {
    expect((await both()).map((status) => status.subscription_status)).toEqual([null, 'active']);
  });
  it(row('BillingStatus', 6), async () => {
    const now = new Date();
    const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString();
    expect((await both()).map((status) => status.current_period_end)).toEqual([null, end]);
  });
  it(row('BillingStatus', 7), async () => {
    const own = await harness.person();
    expect((await harness.billing(own)).payment_customer_id).toBeNull();
    await harness.order('setup-intent', own);
    const { payment_customer_id: id } = await harness.billing(own);
    expect(id).toMatch(/^cus_\w+$/);
    await harness.order('setup-intent', own);
    expect((await harness.billing(own)).payment_customer_id).toBe(id);
  });
  it(row('BillingStatus', 8), async () => {
    const own = await harness.person();
    expect(await harness.addCard(own, 'declined')).toBe(402);
    expect((await harness.billing(own)).has_payment_method).toBe(false);
    expect(refusalOf(await harness.order('subscribe', own))).toEqual([400, 'BILLING_NO_PAYMENT_METHOD']);
    await harness.addCard(own);
    await harness.billingWhen(own, ({ has_payment_method }) => has_payment_method);
  });
  it(row('BillingStatus', 9), async () => {
    expect((await both()).map((status) => status.allow_custom_subdomains)).toEqual([true, true]);
  });
  it(row('BillingStatus', 10), async () => {
    expect((await both()).map((status) => status.monthly_minimum_cents)).toEqual([0, 300]);
  });
  it(row('Contract', 22), async () => {
    const own = await harness.paygPerson();
    await harness.reportUsage(own, 8 * CENT - 1);
    const usage = async ({ token }: Pick<Person, 'token'>) =>
      billingUsage.strict().parse((await harness.get('/billing/usage', token)).body);
    const prices = { price_cents_per_gb: 10, monthly_minimum_cents: 300 };
    expect(await usage(own)).toMatchObject({ metered_bytes: 8 * CENT - 1, usage_cents: 7, ...prices });
    expect(await usage(free)).toMatchObject({ metered_bytes: 0, usage_cents: 0, ...prices });
    expect((await usage(own)).month).toMatch(/^\d{4}-\d\d$/);
    expect(refusalOf(await harness.get('/billing/usage'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
  });
};
