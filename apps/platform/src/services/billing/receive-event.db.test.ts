import { Fault } from '@tunnel/errors';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BillingFixture, NOON, openBillingFixture } from './billing.fixture.ts';
import { receiveEvent } from './receive-event.ts';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterEach(() => {
  fixture.processor.mood = 'well';
  fixture.onFlush = async () => {};
});
afterAll(() => fixture.close());

const send = (id: string, type: string, customerId: string | null, signature = 'good'): Promise<void> => {
  const body = new TextEncoder().encode(JSON.stringify({ id, type, customerId, createdAt: NOON }));
  return receiveEvent(fixture.context, { body, signature });
};
const noted = (id: string) =>
  fixture.context.db.selectFrom('processor_events').selectAll().where('id', '=', id).executeTakeFirst();
const reads = (customerId: string): number =>
  fixture.processor.callsOf('readCustomer').filter((id) => id === customerId).length;

describe('a webhook event of the payment processor', () => {
  it('with a wrong signature is rejected and leaves no trace', async () => {
    await expect(send('evt_forged', 'invoice.paid', null, 'forged')).rejects.toMatchObject({
      code: 'WEBHOOK_SIGNATURE',
      status: 400,
    });
    expect(await noted('evt_forged')).toBeUndefined();
  });

  it('only triggers a read of the customer; its content is not trusted', async () => {
    const { user, customerId } = await fixture.addSubscriber('ada');
    // The event reports an end, although the subscription is still active.
    await send('evt_1', 'customer.subscription.deleted', customerId);
    expect(await fixture.accountOf(user)).toMatchObject({ subscription_status: 'active' });
    expect(await noted('evt_1')).toMatchObject({
      type: 'customer.subscription.deleted',
      customer_id: customerId,
      received_at: new Date(NOON),
      handled_at: new Date(NOON),
    });
  });

  it('is handled once, even if delivered three times', async () => {
    const { customerId } = await fixture.addSubscriber('bob');
    const before = reads(customerId);
    for (let time = 0; time < 3; time += 1) await send('evt_2', 'invoice.paid', customerId);
    expect(reads(customerId)).toBe(before + 1);
  });

  it('is stored before it is handled, and stays open if handling fails', async () => {
    const { user, customerId } = await fixture.addPayer('carl');
    fixture.processor.mood = 'away';
    await expect(send('evt_3', 'payment_method.attached', customerId)).rejects.toMatchObject({ status: 503 });
    expect(await noted('evt_3')).toMatchObject({ handled_at: null });
    fixture.processor.mood = 'well';
    await send('evt_3', 'payment_method.attached', customerId);
    expect(await noted('evt_3')).toMatchObject({ handled_at: new Date(NOON) });
    expect((await fixture.accountOf(user)).has_payment_method).toBe(true);
  });

  it('for a draft invoice first reports usage, and fails if reporting fails', async () => {
    const { user, customerId } = await fixture.addSubscriber('dora');
    const before = reads(customerId);
    fixture.onFlush = async () => {
      expect(reads(customerId)).toBe(before);
      throw new Fault('BILLING_PROCESSOR_AWAY');
    };
    await expect(send('evt_4', 'invoice.created', customerId)).rejects.toMatchObject({ status: 503 });
    expect(await noted('evt_4')).toMatchObject({ handled_at: null });
    fixture.onFlush = async () => {};
    await send('evt_4', 'invoice.created', customerId);
    await send('evt_5', 'invoice.finalized', customerId);
    expect(fixture.flushed).toEqual([user.userId, user.userId]);
  });

  it.each([
    ['of a customer that is not ours', 'invoice.paid', 'cus_stranger'],
    ['of no customer', 'invoice.paid', null],
    ['of a kind that is no matter of ours', 'charge.dispute.created', 'cus_stranger'],
  ])('%s is stored and acknowledged', async (name, type, customerId) => {
    await send(`evt ${name}`, type, customerId);
    expect(await noted(`evt ${name}`)).toMatchObject({ handled_at: new Date(NOON) });
  });

  it('gives the same state even if delivered ten times concurrently', async () => {
    const { user, customerId } = await fixture.addSubscriber('erin');
    fixture.processor.changeSubscription(customerId, { status: 'past_due' });
    await Promise.all(Array.from({ length: 10 }, () => send('evt_6', 'invoice.payment_failed', customerId)));
    expect(await fixture.accountOf(user)).toMatchObject({ subscription_status: 'past_due' });
    expect(await fixture.mailsTo('erin')).toEqual(['Your Hatchway payment failed']);
  });
});
