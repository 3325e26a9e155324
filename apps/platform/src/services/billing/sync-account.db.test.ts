import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BillingFixture, NOON, openBillingFixture } from './billing.fixture.ts';
import { PERIOD_END } from './memory-processor.fixture.ts';
import { syncAccount } from './sync-account.ts';

const HOUR_MS = 60 * 60_000;

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterEach(() => {
  fixture.processor.moodOf = {};
});
afterAll(() => fixture.close());

const actionsOf = async (user: { kind: 'user'; userId: string }): Promise<string[]> =>
  (await fixture.auditsOf(user)).map(({ action }) => action.replace('billing.', ''));

describe('syncing an account with the payment processor', () => {
  it('makes no call if the account has no customer', async () => {
    const user = await fixture.addUser('nobody');
    await syncAccount(fixture.context, user.userId);
    expect(fixture.processor.callsOf('readCustomer')).toEqual([]);
  });

  it('stores the first payment method', async () => {
    const { user } = await fixture.addPayer('card');
    expect(await fixture.accountOf(user)).toMatchObject({ has_payment_method: false, synced_at: null });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({ has_payment_method: true, synced_at: new Date(NOON) });
    expect(await fixture.changesOf(user)).toEqual([]);
  });

  it("sends a changed email address to the processor, but none after the account's deletion", async () => {
    const { user, customerId } = await fixture.addSubscriber('moving');
    const users = fixture.database.db.updateTable('users').where('id', '=', user.userId);
    const rename = (email: string, deleted_at: Date | null = null) => users.set({ email, deleted_at }).execute();
    const told = () =>
      fixture.processor.callsOf('setEmail').filter((input) => Object.values(input as object).includes(customerId));
    await syncAccount(fixture.context, user.userId);
    expect(told()).toEqual([]);
    await rename('moved@example.com');
    fixture.processor.moodOf = { setEmail: 'refuses' };
    fixture.processor.change(customerId, { card: { brand: 'visa', last4: '4242' } });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({ card_last4: '4242' });
    fixture.processor.moodOf = {};
    for (let turn = 0; turn < 2; turn += 1) await syncAccount(fixture.context, user.userId);
    expect(told()).toHaveLength(2);
    expect(fixture.processor.factsOf(customerId).email).toBe('moved@example.com');
    await rename('deleted:1', new Date(NOON));
    await syncAccount(fixture.context, user.userId);
    expect(fixture.processor.factsOf(customerId).email).toBe('moved@example.com');
  });

  it('starts a past-due spell with a single mail per failure', async () => {
    const { user, customerId } = await fixture.addSubscriber('late');
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    await syncAccount(fixture.context, user.userId);
    await fixture.clock.advance(HOUR_MS);
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_status: 'past_due',
      past_due_since: new Date(fixture.clock.now() - HOUR_MS),
    });
    expect(await fixture.mailsTo('late')).toEqual(['Your Hatchway payment failed']);
    fixture.processor.changeSubscription(customerId, { status: 'active' });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({ past_due_since: null, past_due_mailed_at: null });
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.mailsTo('late')).toHaveLength(2);
    expect(await fixture.planOf(user)).toBe('payg');
    // Edges were notified of the failed payment and of the recovery.
    expect(await fixture.changesOf(user)).toHaveLength(2);
  });

  it("follows the processor's test clock for the age of a past-due payment", async () => {
    const { user, customerId } = await fixture.addSubscriber('moved');
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    const since = fixture.clock.now();
    const aheadMs = 40 * 24 * HOUR_MS;
    for (const [moved, passed] of [
      [0, 0],
      [500, 0],
      [100 * HOUR_MS, 100 * HOUR_MS],
      [100 * HOUR_MS + 1, 100 * HOUR_MS],
      [200 * HOUR_MS, 200 * HOUR_MS],
    ] as const) {
      fixture.processor.change(customerId, { clock: { now: since + aheadMs + moved, unpaidSince: since + aheadMs } });
      await syncAccount(fixture.context, user.userId);
      const account = await fixture.accountOf(user);
      expect(since - (account?.past_due_since?.getTime() ?? 0)).toBe(passed);
    }
    expect(await fixture.mailsTo('moved')).toEqual(['Your Hatchway payment failed']);
    const late = await fixture.addSubscriber('late-seen');
    fixture.processor.changeSubscription(late.customerId, { status: 'past_due' });
    fixture.processor.change(late.customerId, {
      clock: { now: since + aheadMs, unpaidSince: since + aheadMs - HOUR_MS },
    });
    await syncAccount(fixture.context, late.user.userId);
    expect(await fixture.accountOf(late.user)).toMatchObject({ past_due_since: new Date(since - HOUR_MS) });
  });

  it('adds the final minimum even if the end was not noticed in advance', async () => {
    const { user, customerId } = await fixture.addSubscriber('silent');
    fixture.processor.changeSubscription(customerId, { status: 'canceled', cancelsAtPeriodEnd: true });
    fixture.processor.moodOf = { setFinalMinimum: 'away' };
    await expect(syncAccount(fixture.context, user.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(await fixture.planOf(user)).toBe('payg');
    fixture.processor.moodOf = {};
    await syncAccount(fixture.context, user.userId);
    await syncAccount(fixture.context, user.userId);
    const orders = fixture.processor.callsOf('setFinalMinimum') as { customerId: string; hasEnded: boolean }[];
    const own = orders.filter((order) => order.customerId === customerId && order.hasEnded);
    expect(own).toMatchObject(Array.from({ length: 2 }, () => ({ periodEnd: PERIOD_END, wanted: true })));
    expect(await fixture.planOf(user)).toBe('free');
  });

  it('shows a scheduled end as canceled, keeps the plan, adds the final minimum, then moves to the free plan', async () => {
    const { user, customerId } = await fixture.addSubscriber('leaver');
    fixture.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    await syncAccount(fixture.context, user.userId);
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_status: 'canceled',
      cancels_at_period_end: true,
    });
    expect(await fixture.planOf(user)).toBe('payg');
    expect(fixture.processor.callsOf('setFinalMinimum').at(-1)).toEqual({
      customerId,
      subscriptionId: expect.any(String) as string,
      periodEnd: PERIOD_END,
      wanted: true,
      hasEnded: false,
    });
    fixture.processor.changeSubscription(customerId, { status: 'canceled' });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_status: 'canceled',
      cancels_at_period_end: false,
      metered_from: null,
      current_period_end: null,
    });
    expect(await fixture.planOf(user)).toBe('free');
    expect(await fixture.changesOf(user)).toEqual(['account-changed', 'account-changed']);
    expect(await actionsOf(user)).toEqual(['subscription-started', 'subscription-set-to-end', 'subscription-ended']);
  });

  it('stores the state only after the processor accepted its part', async () => {
    const { user, customerId } = await fixture.addSubscriber('unlucky');
    fixture.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    fixture.processor.moodOf = { setFinalMinimum: 'away' };
    await expect(syncAccount(fixture.context, user.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_status: 'active',
      cancels_at_period_end: false,
    });
    fixture.processor.moodOf = {};
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_status: 'canceled',
      cancels_at_period_end: true,
    });
  });

  it('removes a leftover final minimum of a subscription that continues', async () => {
    // Simulates a process that died after adding the minimum at the processor; the subscription was kept before the next sync.
    const { user, customerId } = await fixture.addSubscriber('survivor');
    await syncAccount(fixture.context, user.userId);
    expect(fixture.processor.callsOf('setFinalMinimum').at(-1)).toMatchObject({ customerId, wanted: false });
  });

  it("starts metering now if the processor's clock is ahead, and keeps that start", async () => {
    const { user, customerId } = await fixture.addSubscriber('ahead');
    const ahead = fixture.clock.now() + 40 * 24 * HOUR_MS;
    fixture.processor.changeSubscription(customerId, { id: 'sub_ahead', startedAt: ahead });
    await syncAccount(fixture.context, user.userId);
    const meteredFrom = new Date(fixture.clock.now());
    expect((await fixture.accountOf(user)).metered_from).toEqual(meteredFrom);
    await fixture.clock.advance(HOUR_MS);
    await syncAccount(fixture.context, user.userId);
    expect((await fixture.accountOf(user)).metered_from).toEqual(meteredFrom);
  });

  it('keeps a plan set by the operator when the subscription ends', async () => {
    const { user, customerId } = await fixture.addSubscriber('friend');
    const { db } = fixture.context;
    const plan = { tunnel_limit: null, allow_custom_subdomains: true, monthly_minimum_cents: 0, price_cents_per_gb: 0 };
    await db
      .insertInto('plans')
      .values({ name: 'friends', ...plan })
      .execute();
    await fixture.setPlan(user, 'friends');
    fixture.processor.changeSubscription(customerId, { status: 'canceled' });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.planOf(user)).toBe('friends');
  });

  it('clears the billing data of a deleted customer, but not with mayForget false', async () => {
    const { user, customerId } = await fixture.addSubscriber('gone');
    fixture.processor.customers.delete(customerId);
    await syncAccount(fixture.context, user.userId, { mayForget: false });
    expect(await fixture.accountOf(user)).toMatchObject({ customer_id: customerId, subscription_status: 'active' });
    await syncAccount(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({
      customer_id: null,
      has_payment_method: false,
      subscription_status: 'canceled',
    });
    expect(await fixture.planOf(user)).toBe('free');
  });

  it('skips an account that was read in the meantime', async () => {
    const { user, customerId } = await fixture.addSubscriber('read');
    const since = fixture.clock.now() - 1;
    const reads = () => fixture.processor.callsOf('readCustomer').filter((id) => id === customerId).length;
    const before = reads();
    await syncAccount(fixture.context, user.userId, { notReadSince: since });
    expect(reads()).toBe(before);
    await syncAccount(fixture.context, user.userId, { notReadSince: fixture.clock.now() });
    expect(reads()).toBe(before + 1);
  });
});
