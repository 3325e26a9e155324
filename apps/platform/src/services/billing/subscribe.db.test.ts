import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cutUsage } from '../../billing/metering/meter-events.ts';
import { meteredOf, setMetered } from './billed-account.fixture.ts';
import { type BillingFixture, NOON, openBillingFixture } from './billing.fixture.ts';
import { PERIOD_END } from './memory-processor.fixture.ts';
import { subscribe } from './subscribe.ts';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterEach(() => {
  fixture.processor.mood = 'well';
  fixture.processor.moodOf = {};
});
afterAll(() => fixture.close());

const noMethod = { code: 'BILLING_NO_PAYMENT_METHOD', status: 400 };

describe('a subscription', () => {
  it('is not started without a payment method', async () => {
    const stranger = await fixture.addUser('stranger');
    await expect(subscribe(fixture.context, stranger)).rejects.toMatchObject(noMethod);
    const { user, customerId } = await fixture.addPayer('cardless');
    fixture.processor.change(customerId, { paymentMethods: [] });
    await expect(subscribe(fixture.context, user)).rejects.toMatchObject(noMethod);
    expect(await fixture.planOf(user)).toBe('free');
  });

  it('starts with the first payment method as default, and updates plan, state, audit log and edges', async () => {
    const { user, customerId } = await fixture.addPayer('ada');
    const started = await subscribe(fixture.context, user);
    expect(started).toEqual({
      status: 'active',
      plan: 'payg',
      payment_subscription_id: fixture.processor.factsOf(customerId).subscription?.id,
    });
    expect(fixture.processor.factsOf(customerId).defaultPaymentMethod).toBe('pm_ada');
    expect(await fixture.planOf(user)).toBe('payg');
    expect(await fixture.accountOf(user)).toMatchObject({
      subscription_id: started.payment_subscription_id,
      subscription_status: 'active',
      has_payment_method: true,
      current_period_end: new Date(PERIOD_END),
      metered_from: new Date(NOON - 60 * 60_000),
      subscriptions: 1,
    });
    expect(await fixture.changesOf(user)).toEqual(['account-changed']);
    const actor = `user:${user.userId}`;
    expect(await fixture.auditsOf(user)).toMatchObject([{ actor, action: 'billing.subscription-started' }]);
  });

  it('that exists is returned as it is, without a second subscription and without a card', async () => {
    const { user, customerId } = await fixture.addSubscriber('bob');
    const first = await subscribe(fixture.context, user);
    fixture.processor.change(customerId, { paymentMethods: [], defaultPaymentMethod: null });
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    expect(await subscribe(fixture.context, user)).toEqual({ ...first, status: 'past_due' });
    expect(fixture.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
  });

  it('scheduled to end is kept with the same ID', async () => {
    const { user, customerId } = await fixture.addSubscriber('carl');
    fixture.processor.changeSubscription(customerId, { cancelsAtPeriodEnd: true });
    const before = fixture.processor.factsOf(customerId).subscription?.id;
    expect(await subscribe(fixture.context, user)).toEqual({
      status: 'active',
      plan: 'payg',
      payment_subscription_id: before,
    });
    expect(await fixture.accountOf(user)).toMatchObject({ cancels_at_period_end: false, subscriptions: 1 });
  });

  it('that ended is followed by a new subscription with a new idempotency key', async () => {
    const { user, customerId } = await fixture.addSubscriber('dora');
    fixture.processor.changeSubscription(customerId, { status: 'canceled' });
    const { payment_subscription_id } = await subscribe(fixture.context, user);
    const keys = fixture.processor.callsOf('subscribe').filter((order) => isOf(order, customerId));
    expect(keys).toMatchObject([
      { idempotencyKey: `subscribe:${user.userId}:1` },
      { idempotencyKey: `subscribe:${user.userId}:2` },
    ]);
    expect(await fixture.accountOf(user)).toMatchObject({ subscription_id: payment_subscription_id, subscriptions: 2 });
  });
});

it('a subscription never bills usage from before its start', async () => {
  const { user, customerId } = await fixture.addPayer('ines');
  const { db } = fixture.database;
  const unreported = async (): Promise<number> => {
    await setMetered(db, user.userId, 2_000_000_000, NOON);
    await subscribe(fixture.context, user);
    return cutUsage(db, { now: NOON, userId: user.userId });
  };
  expect(await unreported()).toBe(0);
  // All usage counts while the subscription is active, however often subscribe is called.
  expect(await unreported()).toBe(1);
  fixture.processor.changeSubscription(customerId, { status: 'canceled' });
  await db
    .updateTable('meter_events')
    .set({ sent_at: new Date(NOON) })
    .execute();
  await setMetered(db, user.userId, 3_000_000_000, NOON);
  await subscribe(fixture.context, user);
  expect(await meteredOf(db, user.userId)).toEqual([{ month: '2030-06', bytes: 2_000_000_000 }]);
});

const isOf = (order: unknown, customerId: string): boolean =>
  (order as { readonly customerId: string }).customerId === customerId;

describe('a subscribe call', () => {
  it('creates one subscription if made twenty times concurrently', async () => {
    const { user, customerId } = await fixture.addPayer('erin');
    const answers = await Promise.all(Array.from({ length: 20 }, () => subscribe(fixture.context, user)));
    expect(new Set(answers.map(({ payment_subscription_id }) => payment_subscription_id)).size).toBe(1);
    expect(fixture.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
    expect(await fixture.changesOf(user)).toEqual(['account-changed']);
  });

  it('adopts a subscription that a dead process created but did not store', async () => {
    const { user, customerId } = await fixture.addPayer('fred');
    const lost = await fixture.processor.subscribe({ customerId, userId: user.userId, idempotencyKey: 'lost' });
    expect(await subscribe(fixture.context, user)).toMatchObject({ payment_subscription_id: lost.id });
    expect(fixture.processor.callsOf('subscribe').filter((order) => isOf(order, customerId))).toHaveLength(1);
  });

  it('leaves nothing behind while the processor is unavailable, and is retried with the same key', async () => {
    const { user, customerId } = await fixture.addPayer('gina');
    fixture.processor.moodOf = { subscribe: 'away' };
    await expect(subscribe(fixture.context, user)).rejects.toMatchObject({
      code: 'BILLING_PROCESSOR_AWAY',
      status: 503,
    });
    expect(await fixture.planOf(user)).toBe('free');
    expect(await fixture.accountOf(user)).toMatchObject({ subscription_id: null, subscriptions: 0 });
    fixture.processor.moodOf = {};
    await subscribe(fixture.context, user);
    const keys = fixture.processor.callsOf('subscribe').filter((order) => isOf(order, customerId));
    expect(new Set(keys.map((order) => (order as { idempotencyKey: string }).idempotencyKey)).size).toBe(1);
  });

  it('uses a new idempotency key after a refusal, because the processor remembers the refusal', async () => {
    const { user } = await fixture.addPayer('hugo');
    fixture.processor.moodOf = { subscribe: 'refuses' };
    await expect(subscribe(fixture.context, user)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_REFUSED' });
    fixture.processor.moodOf = {};
    await subscribe(fixture.context, user);
    expect(fixture.processor.callsOf('subscribe').at(-1)).toMatchObject({
      idempotencyKey: `subscribe:${user.userId}:2`,
    });
  });
});
