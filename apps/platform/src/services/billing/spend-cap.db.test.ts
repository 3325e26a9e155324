import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BillingFixture, openBillingFixture } from './billing.fixture.ts';
import { setSpendCap } from './spend-cap.ts';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterAll(() => fixture.close());

const setCap = (user: Parameters<typeof setSpendCap>[1], spend_cap_cents: number | null) =>
  setSpendCap(fixture.context, user, { spend_cap_cents });

it('a spend cap is rejected on plans without usage pricing', async () => {
  const user = await fixture.addUser('free');
  await expect(setCap(user, 500)).rejects.toMatchObject({ code: 'BILLING_CAP_NOT_PAYG', status: 400 });
  await expect(setCap(user, null)).rejects.toMatchObject({ code: 'BILLING_CAP_NOT_PAYG' });
  expect(await fixture.changesOf(user)).toEqual([]);
});

it('each change of a spend cap is announced to edges and audited with old and new value', async () => {
  // Also works without a subscription, because an operator set the plan.
  const user = await fixture.addUser('given', 'payg');
  for (const cap of [500, 0, Number.MAX_SAFE_INTEGER, null]) {
    expect(await setCap(user, cap)).toEqual({ spend_cap_cents: cap });
    expect((await fixture.accountOf(user)).spend_cap_cents).toBe(cap);
  }
  expect(await fixture.changesOf(user)).toEqual(Array.from({ length: 4 }, () => 'account-changed'));
  const audits = await fixture.auditsOf(user);
  expect(audits.map(({ details }) => details)).toEqual([
    { from: null, to: 500 },
    { from: 500, to: 0 },
    { from: 0, to: Number.MAX_SAFE_INTEGER },
    { from: Number.MAX_SAFE_INTEGER, to: null },
  ]);
  expect(audits[0]).toMatchObject({ actor: `user:${user.userId}`, action: 'billing.spend-cap-set' });
});

it('an unchanged spend cap causes no announcement and no audit entry', async () => {
  const user = await fixture.addUser('same', 'payg');
  await setCap(user, null);
  await setCap(user, 700);
  await setCap(user, 700);
  expect(await fixture.changesOf(user)).toEqual(['account-changed']);
  expect(await fixture.auditsOf(user)).toHaveLength(1);
});

it('a new spend cap resets cap_closed_at, so that tunnels can be closed again at once', async () => {
  const user = await fixture.addUser('closed', 'payg');
  await setCap(user, 500);
  const { db } = fixture.context;
  await db
    .updateTable('billing_accounts')
    .set({ cap_closed_at: new Date() })
    .where('user_id', '=', user.userId)
    .execute();
  await setCap(user, 600);
  expect((await fixture.accountOf(user)).cap_closed_at).toBeNull();
});

it("setting a spend cap keeps the subscription's data", async () => {
  const { user, customerId } = await fixture.addSubscriber('payer');
  await setCap(user, 100);
  expect(await fixture.accountOf(user)).toMatchObject({ customer_id: customerId, subscription_status: 'active' });
});
