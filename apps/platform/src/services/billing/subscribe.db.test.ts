import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cutUsage } from '../../billing/metering/meter-events.ts';
import { meteredOf, setMetered } from './billed-account.fixture.ts';
import { type BillingScene, NOON, openBillingScene } from './billing-scene.fixture.ts';
import { PERIOD_END } from './memory-processor.fixture.ts';
import { subscribe } from './subscribe.ts';

let scene: BillingScene;
beforeAll(async () => {
  scene = await openBillingScene();
});
afterEach(() => {
  scene.processor.mood = 'well';
  scene.processor.moodOf = {};
});
afterAll(() => scene.close());

const noMethod = { code: 'BILLING_NO_PAYMENT_METHOD', status: 400 };

describe('a subscription', () => {
  it('is not started without a payment method on file', async () => {
    const stranger = await scene.addUser('stranger');
    await expect(subscribe(scene.context, stranger)).rejects.toMatchObject(noMethod);
    const { user, customerId } = await scene.addPayer('cardless');
    scene.processor.change(customerId, { paymentMethods: [] });
    await expect(subscribe(scene.context, user)).rejects.toMatchObject(noMethod);
    expect(await scene.planOf(user)).toBe('free');
  });

  it('is started with the first method as the default: plan, state, audit and edges follow', async () => {
    const { user, customerId } = await scene.addPayer('ada');
    const started = await subscribe(scene.context, user);
    expect(started).toEqual({
      status: 'active',
      plan: 'payg',
      payment_subscription_id: scene.processor.factsOf(customerId).subscription?.id,
    });
    expect(scene.processor.factsOf(customerId).defaultPaymentMethod).toBe('pm_ada');
    expect(await scene.planOf(user)).toBe('payg');
    expect(await scene.accountOf(user)).toMatchObject({
      subscription_id: started.payment_subscription_id,
      subscription_status: 'active',
      has_payment_method: true,
      current_period_end: new Date(PERIOD_END),
      metered_from: new Date(NOON - 60 * 60_000),
      subscriptions: 1,
    });
    expect(await scene.changesOf(user)).toEqual(['account-changed']);
    const actor = `user:${user.userId}`;
    expect(await scene.auditsOf(user)).toMatchObject([{ actor, action: 'billing.subscription-started' }]);
  });

  it('is told as it is when it lives, without a second one and without a card', async () => {
    const { user, customerId } = await scene.addSubscriber('bob');
    const first = await subscribe(scene.context, user);
    scene.processor.change(customerId, { paymentMethods: [], defaultPaymentMethod: null });
    scene.processor.changeSubscription(customerId, { status: 'past_due' });
    expect(await subscribe(scene.context, user)).toEqual({ ...first, status: 'past_due' });
    expect(scene.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
  });

  it('that was set to end is kept, with the same id', async () => {
    const { user, customerId } = await scene.addSubscriber('carl');
    scene.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    const before = scene.processor.factsOf(customerId).subscription?.id;
    expect(await subscribe(scene.context, user)).toEqual({
      status: 'active',
      plan: 'payg',
      payment_subscription_id: before,
    });
    expect(await scene.accountOf(user)).toMatchObject({ cancels_at_period_end: false, subscriptions: 1 });
  });

  it('that has ended is followed by a new one, with a key of its own', async () => {
    const { user, customerId } = await scene.addSubscriber('dora');
    scene.processor.changeSubscription(customerId, { status: 'canceled' });
    const { payment_subscription_id } = await subscribe(scene.context, user);
    const keys = scene.processor.callsOf('subscribe').filter((order) => isOf(order, customerId));
    expect(keys).toMatchObject([
      { idempotencyKey: `subscribe:${user.userId}:1` },
      { idempotencyKey: `subscribe:${user.userId}:2` },
    ]);
    expect(await scene.accountOf(user)).toMatchObject({ subscription_id: payment_subscription_id, subscriptions: 2 });
  });
});

it('never bills what an account used before its subscription began', async () => {
  const { user, customerId } = await scene.addPayer('ines');
  const { db } = scene.database;
  const unreported = async (): Promise<number> => {
    await setMetered(db, user.userId, 2_000_000_000, NOON);
    await subscribe(scene.context, user);
    return cutUsage(db, { now: NOON, userId: user.userId });
  };
  expect(await unreported()).toBe(0);
  // While it lives, all of it counts, however often it is asked for.
  expect(await unreported()).toBe(1);
  scene.processor.changeSubscription(customerId, { status: 'canceled' });
  await db
    .updateTable('meter_events')
    .set({ sent_at: new Date(NOON) })
    .execute();
  await setMetered(db, user.userId, 3_000_000_000, NOON);
  await subscribe(scene.context, user);
  expect(await meteredOf(db, user.userId)).toEqual([{ month: '2030-06', bytes: 2_000_000_000 }]);
});

const isOf = (order: unknown, customerId: string): boolean =>
  (order as { readonly customerId: string }).customerId === customerId;

describe('a subscription that is asked for', () => {
  it('twenty times at once is made once', async () => {
    const { user, customerId } = await scene.addPayer('erin');
    const answers = await Promise.all(Array.from({ length: 20 }, () => subscribe(scene.context, user)));
    expect(new Set(answers.map(({ payment_subscription_id }) => payment_subscription_id)).size).toBe(1);
    expect(scene.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
    expect(await scene.changesOf(user)).toEqual(['account-changed']);
  });

  it('is adopted when the process died between making and storing it', async () => {
    const { user, customerId } = await scene.addPayer('fred');
    const lost = await scene.processor.subscribe({ customerId, userId: user.userId, idempotencyKey: 'lost' });
    expect(await subscribe(scene.context, user)).toMatchObject({ payment_subscription_id: lost.id });
    expect(scene.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
  });

  it('while the processor is away leaves nothing behind, and the next try has the same key', async () => {
    const { user, customerId } = await scene.addPayer('gina');
    scene.processor.moodOf = { subscribe: 'away' };
    await expect(subscribe(scene.context, user)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY', status: 503 });
    expect(await scene.planOf(user)).toBe('free');
    expect(await scene.accountOf(user)).toMatchObject({ subscription_id: null, subscriptions: 0 });
    scene.processor.moodOf = {};
    await subscribe(scene.context, user);
    const keys = scene.processor.callsOf('subscribe').filter((order) => isOf(order, customerId));
    expect(new Set(keys.map((order) => (order as { idempotencyKey: string }).idempotencyKey)).size).toBe(1);
  });

  it('is asked for with another key after a refusal, which the processor remembers with the key', async () => {
    const { user } = await scene.addPayer('hugo');
    scene.processor.moodOf = { subscribe: 'refuses' };
    await expect(subscribe(scene.context, user)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_REFUSED' });
    scene.processor.moodOf = {};
    await subscribe(scene.context, user);
    expect(scene.processor.callsOf('subscribe').at(-1)).toMatchObject({
      idempotencyKey: `subscribe:${user.userId}:2`,
    });
  });
});
