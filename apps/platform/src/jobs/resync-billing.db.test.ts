import { afterEach, beforeEach, expect, it } from 'vitest';
import { PLATFORM_BOUNDS } from '../platform-bounds.ts';
import { type BillingScene, openBillingScene } from '../services/billing/billing-scene.fixture.ts';
import { resyncBilling } from './resync-billing.ts';

let scene: BillingScene;
beforeEach(async () => {
  scene = await openBillingScene();
});
afterEach(() => scene.close());

const run = (): Promise<void> => resyncBilling(scene.context).run(scene.context);
const reads = (): number => scene.processor.callsOf('readCustomer').length;

it('accounts that were not read for an hour are read, and only those', async () => {
  const { user, customerId } = await scene.addSubscriber('ada');
  await scene.addUser('free');
  scene.processor.changeSubscription(customerId, { status: 'canceled' });
  const before = reads();
  await scene.clock.advance(PLATFORM_BOUNDS.RESYNC_AFTER_MS - 1);
  await run();
  expect(reads()).toBe(before);
  await scene.clock.advance(1);
  await run();
  expect(await scene.planOf(user)).toBe('free');
  await run();
  expect(reads()).toBe(before + 1);
});

it('two processes at once ask for each account once', async () => {
  for (const name of ['ada', 'bob', 'carl']) await scene.addPayer(name);
  await Promise.all([run(), run(), run()]);
  expect(reads()).toBe(3);
});

it('one that is refused does not keep the others from being read', async () => {
  const { customerId } = await scene.addPayer('ada');
  const { user } = await scene.addPayer('bob');
  const { readCustomer } = scene.processor;
  scene.processor.readCustomer = async (id) => {
    if (id !== customerId) return readCustomer.call(scene.processor, id);
    scene.processor.moodOf = { readCustomer: 'refuses' };
    return readCustomer.call(scene.processor, id).finally(() => {
      scene.processor.moodOf = {};
    });
  };
  await run();
  expect((await scene.accountOf(user)).has_payment_method).toBe(true);
});

it('a processor that is away is asked once in a run', async () => {
  for (const name of ['ada', 'bob', 'carl']) await scene.addPayer(name);
  scene.processor.mood = 'away';
  await run();
  expect(reads()).toBe(1);
});

it('a customer that is unknown over there is told of, and ends nothing', async () => {
  const { user, customerId } = await scene.addSubscriber('ada');
  scene.processor.customers.delete(customerId);
  await scene.clock.advance(PLATFORM_BOUNDS.RESYNC_AFTER_MS);
  await run();
  expect(await scene.planOf(user)).toBe('payg');
  expect((await scene.accountOf(user)).synced_at).toEqual(new Date(scene.clock.now()));
});
