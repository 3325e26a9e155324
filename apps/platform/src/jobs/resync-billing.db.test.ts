import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BillingFixture, openBillingFixture } from '../services/billing/billing.fixture.ts';
import { RESYNC_AFTER_MS, resyncBilling } from './resync-billing.ts';

let fixture: BillingFixture;
beforeEach(async () => {
  fixture = await openBillingFixture();
});
afterEach(() => fixture.close());

const run = (): Promise<void> => resyncBilling(fixture.context).run(fixture.context);
const reads = (): number => fixture.processor.callsOf('readCustomer').length;

it('the billing resync reads exactly the accounts not read for an hour', async () => {
  const { user, customerId } = await fixture.addSubscriber('ada');
  await fixture.addUser('free');
  fixture.processor.changeSubscription(customerId, { status: 'canceled' });
  const before = reads();
  await fixture.clock.advance(RESYNC_AFTER_MS - 1);
  await run();
  expect(reads()).toBe(before);
  await fixture.clock.advance(1);
  await run();
  expect(await fixture.planOf(user)).toBe('free');
  await run();
  expect(reads()).toBe(before + 1);
});

it('the billing resync reads each account once even if three runs overlap', async () => {
  for (const name of ['ada', 'bob', 'carl']) await fixture.addPayer(name);
  await Promise.all([run(), run(), run()]);
  expect(reads()).toBe(3);
});

it('the billing resync continues with further accounts if the processor refuses an account', async () => {
  const { customerId } = await fixture.addPayer('ada');
  const { user } = await fixture.addPayer('bob');
  const { readCustomer } = fixture.processor;
  fixture.processor.readCustomer = async (id) => {
    if (id !== customerId) return readCustomer.call(fixture.processor, id);
    fixture.processor.moodOf = { readCustomer: 'refuses' };
    return readCustomer.call(fixture.processor, id).finally(() => {
      fixture.processor.moodOf = {};
    });
  };
  await run();
  expect((await fixture.accountOf(user)).has_payment_method).toBe(true);
});

it('the billing resync asks an unavailable processor only once per run', async () => {
  for (const name of ['ada', 'bob', 'carl']) await fixture.addPayer(name);
  fixture.processor.mood = 'away';
  await run();
  expect(reads()).toBe(1);
});

it('the billing resync keeps the subscription of a customer unknown to the processor', async () => {
  const { user, customerId } = await fixture.addSubscriber('ada');
  fixture.processor.customers.delete(customerId);
  await fixture.clock.advance(RESYNC_AFTER_MS);
  await run();
  expect(await fixture.planOf(user)).toBe('payg');
  expect((await fixture.accountOf(user)).synced_at).toEqual(new Date(fixture.clock.now()));
});
