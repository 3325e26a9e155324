import { afterAll, beforeAll, expect, it } from 'vitest';
import { monthOf } from '../../billing/rules/rating.rules.ts';
import { setMetered } from './billed-account.fixture.ts';
import { type BillingFixture, NOON, openBillingFixture } from './billing.fixture.ts';
import { PERIOD_END } from './memory-processor.fixture.ts';
import { setSpendCap } from './spend-cap.ts';
import { showStatus, showUsage } from './status.ts';

const DAY_MS = 24 * 60 * 60_000;

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterAll(() => fixture.close());

it('the billing status of a free account shows no cost and no payment data', async () => {
  const user = await fixture.addUser('free');
  await setMetered(fixture.context.db, user.userId, 5e12, NOON);
  expect(await showStatus(fixture.context, user)).toEqual({
    billing_model: 'free',
    plan_name: 'free',
    estimated_mtd_cents: 0,
    spend_cap_cents: null,
    subscription_status: null,
    current_period_end: null,
    payment_customer_id: null,
    has_payment_method: false,
    allow_custom_subdomains: true,
    monthly_minimum_cents: 0,
    payment_method: null,
    test_mode: true,
    hidden: false,
  });
});

it('the billing status of a subscriber is complete even while the processor is unavailable', async () => {
  const { user, customerId } = await fixture.addSubscriber('payer');
  await setSpendCap(fixture.context, user, { spend_cap_cents: 2000 });
  fixture.processor.mood = 'away';
  expect(await showStatus(fixture.context, user)).toEqual({
    billing_model: 'payg',
    plan_name: 'payg',
    estimated_mtd_cents: 300,
    spend_cap_cents: 2000,
    subscription_status: 'active',
    current_period_end: new Date(PERIOD_END).toISOString(),
    payment_customer_id: customerId,
    has_payment_method: true,
    allow_custom_subdomains: true,
    monthly_minimum_cents: 300,
    payment_method: { brand: 'visa', last4: '4242' },
    test_mode: true,
    hidden: false,
  });
  fixture.processor.mood = 'well';
});

it("the estimate is the larger of minimum and this month's usage", async () => {
  const { user } = await fixture.addSubscriber('user');
  const estimate = async (): Promise<number> => (await showStatus(fixture.context, user)).estimated_mtd_cents;
  await setMetered(fixture.context.db, user.userId, 9e12, NOON - 31 * DAY_MS);
  expect(await estimate()).toBe(300);
  await setMetered(fixture.context.db, user.userId, 30_099_999_999, NOON);
  expect(await estimate()).toBe(300);
  await setMetered(fixture.context.db, user.userId, 30_100_000_000, NOON);
  expect(await estimate()).toBe(301);
  await setMetered(fixture.context.db, user.userId, 2 ** 53 - 1, NOON);
  expect(await estimate()).toBe(90_071_992);
});

it("the usage of a free account costs nothing, and shows the subscription's prices", async () => {
  const user = await fixture.addUser('free-usage');
  await setMetered(fixture.context.db, user.userId, 5e12, NOON);
  expect(await showUsage(fixture.context, user)).toEqual({
    month: monthOf(NOON),
    metered_bytes: 0,
    usage_cents: 0,
    price_cents_per_gb: 10,
    monthly_minimum_cents: 300,
  });
});

it('the usage of a subscriber covers only this month, in bytes and in cents rounded down once', async () => {
  const { user } = await fixture.addSubscriber('payer-usage');
  await setMetered(fixture.context.db, user.userId, 9e12, NOON - 31 * DAY_MS);
  await setMetered(fixture.context.db, user.userId, 12_399_999_999, NOON);
  expect(await showUsage(fixture.context, user)).toMatchObject({
    metered_bytes: 12_399_999_999,
    usage_cents: 123,
    price_cents_per_gb: 10,
    monthly_minimum_cents: 300,
  });
});

it('the usage of a month without traffic is zero', async () => {
  const { user } = await fixture.addSubscriber('quiet');
  expect(await showUsage(fixture.context, user)).toMatchObject({ metered_bytes: 0, usage_cents: 0 });
});

it.each([
  ['http://localhost:8080', 'simulator', { test_mode: true, hidden: false }],
  ['http://[::1]:8080', 'simulator', { test_mode: true, hidden: false }],
  ['https://tunnels.example.com', 'simulator', { test_mode: true, hidden: true }],
  ['https://tunnels.example.com', 'stripe', { test_mode: false, hidden: false }],
] as const)('the billing mode at %s with the %s is %j', async (public_url, processor, mode) => {
  const user = await fixture.addUser(`${processor}-${public_url.length}`);
  const { settings } = fixture.context;
  const there = { ...settings, public_url, billing: { ...settings.billing, processor } };
  expect(await showStatus({ ...fixture.context, settings: there }, user)).toMatchObject(mode);
});
