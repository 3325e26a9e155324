import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BillingScene, NOON, openBillingScene } from './billing-scene.fixture.ts';
import { PERIOD_END } from './memory-processor.fixture.ts';
import { syncAccount } from './sync-account.ts';

const HOUR_MS = 60 * 60_000;

let scene: BillingScene;
beforeAll(async () => {
  scene = await openBillingScene();
});
afterEach(() => {
  scene.processor.moodOf = {};
});
afterAll(() => scene.close());

const actionsOf = async (user: { kind: 'user'; userId: string }): Promise<string[]> =>
  (await scene.auditsOf(user)).map(({ action }) => action.replace('billing.', ''));

describe('an account that is read at the processor', () => {
  it('is left alone when it has no customer there', async () => {
    const user = await scene.addUser('nobody');
    await syncAccount(scene.context, user.userId);
    expect(scene.processor.callsOf('readCustomer')).toEqual([]);
  });

  it('learns of its first payment method', async () => {
    const { user } = await scene.addPayer('card');
    expect(await scene.accountOf(user)).toMatchObject({ has_payment_method: false, synced_at: null });
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({ has_payment_method: true, synced_at: new Date(NOON) });
    expect(await scene.changesOf(user)).toEqual([]);
  });

  it('is past due from when that was first seen, with one mail for the spell, and another for the next', async () => {
    const { user, customerId } = await scene.addSubscriber('late');
    scene.processor.changeSubscription(customerId, { status: 'past_due' });
    await syncAccount(scene.context, user.userId);
    await scene.clock.advance(HOUR_MS);
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({
      subscription_status: 'past_due',
      past_due_since: new Date(scene.clock.now() - HOUR_MS),
    });
    expect(await scene.mailsTo('late')).toEqual(['A payment failed']);
    scene.processor.changeSubscription(customerId, { status: 'active' });
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({ past_due_since: null, past_due_mailed_at: null });
    scene.processor.changeSubscription(customerId, { status: 'past_due' });
    await syncAccount(scene.context, user.userId);
    expect(await scene.mailsTo('late')).toHaveLength(2);
    expect(await scene.planOf(user)).toBe('payg');
    // It began, and it was paid: edges are told of both.
    expect(await scene.changesOf(user)).toHaveLength(2);
  });

  it('whose end was not heard of before it came gets its last minimum all the same', async () => {
    const { user, customerId } = await scene.addSubscriber('silent');
    scene.processor.changeSubscription(customerId, { status: 'canceled', cancelsAtPeriodEnd: true });
    scene.processor.moodOf = { setFinalMinimum: 'away' };
    await expect(syncAccount(scene.context, user.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(await scene.planOf(user)).toBe('payg');
    scene.processor.moodOf = {};
    await syncAccount(scene.context, user.userId);
    await syncAccount(scene.context, user.userId);
    const orders = scene.processor.callsOf('setFinalMinimum') as { customerId: string; hasEnded: boolean }[];
    const own = orders.filter((order) => order.customerId === customerId && order.hasEnded);
    expect(own).toMatchObject(Array.from({ length: 2 }, () => ({ periodEnd: PERIOD_END, wanted: true })));
    expect(await scene.planOf(user)).toBe('free');
  });

  it('that is set to end is shown as canceled, keeps its plan and gets its last minimum; then it is free', async () => {
    const { user, customerId } = await scene.addSubscriber('leaver');
    scene.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    await syncAccount(scene.context, user.userId);
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({ subscription_status: 'canceled', cancels_at_period_end: true });
    expect(await scene.planOf(user)).toBe('payg');
    expect(scene.processor.callsOf('setFinalMinimum').at(-1)).toEqual({
      customerId,
      subscriptionId: expect.any(String) as string,
      periodEnd: PERIOD_END,
      wanted: true,
      hasEnded: false,
    });
    scene.processor.changeSubscription(customerId, { status: 'canceled' });
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({
      subscription_status: 'canceled',
      cancels_at_period_end: false,
      metered_from: null,
      current_period_end: null,
    });
    expect(await scene.planOf(user)).toBe('free');
    expect(await scene.changesOf(user)).toEqual(['account-changed', 'account-changed']);
    expect(await actionsOf(user)).toEqual(['subscription-started', 'subscription-set-to-end', 'subscription-ended']);
  });

  it('is written only after the processor did its part', async () => {
    const { user, customerId } = await scene.addSubscriber('unlucky');
    scene.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    scene.processor.moodOf = { setFinalMinimum: 'away' };
    await expect(syncAccount(scene.context, user.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(await scene.accountOf(user)).toMatchObject({ subscription_status: 'active', cancels_at_period_end: false });
    scene.processor.moodOf = {};
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({ subscription_status: 'canceled', cancels_at_period_end: true });
  });

  it('that goes on loses a last minimum that nobody here knows of', async () => {
    // A process died after it had put the minimum there, and the account was kept before the next look.
    const { user, customerId } = await scene.addSubscriber('survivor');
    await syncAccount(scene.context, user.userId);
    expect(scene.processor.callsOf('setFinalMinimum').at(-1)).toMatchObject({ customerId, wanted: false });
  });

  it('is metered from now on when the clock over there is ahead, and that stays', async () => {
    const { user, customerId } = await scene.addSubscriber('ahead');
    const ahead = scene.clock.now() + 40 * 24 * HOUR_MS;
    scene.processor.changeSubscription(customerId, { id: 'sub_ahead', startedAt: ahead });
    await syncAccount(scene.context, user.userId);
    const meteredFrom = new Date(scene.clock.now());
    expect((await scene.accountOf(user)).metered_from).toEqual(meteredFrom);
    await scene.clock.advance(HOUR_MS);
    await syncAccount(scene.context, user.userId);
    expect((await scene.accountOf(user)).metered_from).toEqual(meteredFrom);
  });

  it('keeps a plan that an operator gave it when its subscription ends', async () => {
    const { user, customerId } = await scene.addSubscriber('friend');
    const { db } = scene.context;
    const plan = { tunnel_limit: null, allow_custom_subdomains: true, monthly_minimum_cents: 0, price_cents_per_gb: 0 };
    await db
      .insertInto('plans')
      .values({ name: 'friends', ...plan })
      .execute();
    await scene.setPlan(user, 'friends');
    scene.processor.changeSubscription(customerId, { status: 'canceled' });
    await syncAccount(scene.context, user.userId);
    expect(await scene.planOf(user)).toBe('friends');
  });

  it('whose customer is gone has nothing any more; a mere look at all accounts does not say so', async () => {
    const { user, customerId } = await scene.addSubscriber('gone');
    scene.processor.customers.delete(customerId);
    await syncAccount(scene.context, user.userId, { mayForget: false });
    expect(await scene.accountOf(user)).toMatchObject({ customer_id: customerId, subscription_status: 'active' });
    await syncAccount(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({
      customer_id: null,
      has_payment_method: false,
      subscription_status: 'canceled',
    });
    expect(await scene.planOf(user)).toBe('free');
  });

  it('is not read again when somebody else has read it meanwhile', async () => {
    const { user, customerId } = await scene.addSubscriber('read');
    const since = scene.clock.now() - 1;
    const reads = () => scene.processor.callsOf('readCustomer').filter((id) => id === customerId).length;
    const before = reads();
    await syncAccount(scene.context, user.userId, { notReadSince: since });
    expect(reads()).toBe(before);
    await syncAccount(scene.context, user.userId, { notReadSince: scene.clock.now() });
    expect(reads()).toBe(before + 1);
  });
});
