import { monthOf } from '@tunnel/core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { setMetered } from './billed-account.fixture.ts';
import { type BillingFixture, NOON, openBillingFixture } from './billing.fixture.ts';
import { showUsage } from './status.ts';

const DAY_MS = 24 * 60 * 60_000;

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterAll(() => fixture.close());

it('a free account has used nothing that costs, and sees what a subscription would cost', async () => {
  const user = await fixture.addUser('free');
  await setMetered(fixture.context.db, user.userId, 5e12, NOON);
  expect(await showUsage(fixture.context, user)).toEqual({
    month: monthOf(NOON),
    metered_bytes: 0,
    usage_cents: 0,
    price_cents_per_gb: 10,
    monthly_minimum_cents: 300,
  });
});

it('a subscriber sees bytes and cents of this month alone, rounded down once', async () => {
  const { user } = await fixture.addSubscriber('payer');
  await setMetered(fixture.context.db, user.userId, 9e12, NOON - 31 * DAY_MS);
  await setMetered(fixture.context.db, user.userId, 12_399_999_999, NOON);
  expect(await showUsage(fixture.context, user)).toMatchObject({
    metered_bytes: 12_399_999_999,
    usage_cents: 123,
    price_cents_per_gb: 10,
    monthly_minimum_cents: 300,
  });
});

it('of a month in which nothing was carried all is zero', async () => {
  const { user } = await fixture.addSubscriber('quiet');
  expect(await showUsage(fixture.context, user)).toMatchObject({ metered_bytes: 0, usage_cents: 0 });
});
