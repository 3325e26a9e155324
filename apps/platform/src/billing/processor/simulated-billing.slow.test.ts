// Charges of the simulator for accounts of the platform, and the consequences of a failing card.
import { quickClock } from '@tunnel/simulator/fixture';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSimulatedProcessor, type SimulatedProcessor } from './simulated-processor.fixture.ts';

let simulated: SimulatedProcessor;

beforeEach(async () => {
  simulated = await openSimulatedProcessor();
});
afterEach(() => simulated.close());

const report = (customerId: string, bytes: number, identifier = `${customerId}-${Math.random()}`) =>
  simulated.processor.reportUsage({ identifier, customerId, bytes, at: Date.now() });

const invoicesOf = async (customerId: string) =>
  (await simulated.processor.invoices(customerId)).map(({ total, status, amount_paid }) => ({
    total,
    status,
    amount_paid,
  }));

const paid = (total: number) => ({ total, status: 'paid', amount_paid: total });

describe('a subscription that ends immediately', () => {
  it('is charged for its usage or the minimum right away, and nothing at the end of the month', async () => {
    const totals: unknown[] = [];
    for (const bytes of [0, 45_000_000_000]) {
      const { customerId, subscriptionId } = await simulated.subscriber();
      if (bytes > 0) await report(customerId, bytes);
      const facts = await simulated.processor.readCustomer(customerId);
      const periodEnd = facts?.subscription?.periodEnd ?? 0;
      const order = { customerId, subscriptionId, periodEnd, wanted: true, hasEnded: false };
      await simulated.processor.setFinalMinimum(order);
      await simulated.processor.endSubscriptions(customerId);
      await simulated.endMonth();
      totals.push(await invoicesOf(customerId));
    }
    expect(totals).toEqual([[paid(300)], [paid(450)]]);
  });
});

describe('the end of a month', () => {
  it('charges each account the minimum or its usage, and a mid-month start pays once', async () => {
    const usages = [0, 29_999_999_999, 30_000_000_000, 31_230_000_000];
    const customers: string[] = [];
    for (const bytes of usages) {
      const { customerId } = await simulated.subscriber();
      if (bytes > 0) await report(customerId, bytes);
      customers.push(customerId);
    }
    await simulated.endMonth();
    const totals: unknown[] = [];
    for (const customerId of customers) totals.push(await invoicesOf(customerId));
    expect(totals).toEqual([[paid(300)], [paid(300)], [paid(300)], [paid(312)]]);
    const numbers: unknown[] = [];
    for (const customerId of customers) numbers.push((await simulated.processor.invoices(customerId))[0]?.['number']);
    expect(numbers).toEqual(['SIM-000001', 'SIM-000002', 'SIM-000003', 'SIM-000004']);
  });

  it('bills a second month separately, including usage reported while the clock is ahead', async () => {
    const { customerId, subscriptionId } = await simulated.subscriber();
    await report(customerId, 50_000_000_000);
    await simulated.endMonth();
    await report(customerId, 40_000_000_000);
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(400), paid(500)]);
    const late = await simulated.subscriber();
    await report(late.customerId, 70_000_000_000);
    await simulated.endMonth();
    expect(await invoicesOf(late.customerId)).toEqual([paid(700)]);
    expect(await invoicesOf(customerId)).toEqual([paid(300), paid(400), paid(500)]);
    expect((await simulated.processor.readCustomer(customerId))?.subscription).toMatchObject({ id: subscriptionId });
  });

  it("waits for the platform's remaining usage before finalizing an invoice, even with the clock ahead", async () => {
    const { customerId } = await simulated.subscriber();
    let bytes = 60_000_000_000;
    simulated.respond = async ({ type, id: identifier }) => {
      // Simulates a platform that needs some seconds for its report.
      const at = Date.now() + 3000;
      if (type === 'invoice.created') await simulated.processor.reportUsage({ identifier, customerId, bytes, at });
      return 200;
    };
    await simulated.endMonth();
    bytes = 70_000_000_000;
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(700), paid(600)]);
  });

  it('finalizes invoices even if the platform never accepts the webhook', async () => {
    await simulated.close();
    simulated = await openSimulatedProcessor(quickClock());
    const { customerId } = await simulated.subscriber();
    simulated.respond = ({ type }) => (type === 'invoice.created' ? 503 : 200);
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(300)]);
  });

  it('waits for a platform that needs long for many accounts', async () => {
    await simulated.close();
    const clock = new FakeClock(Date.now());
    simulated = await openSimulatedProcessor(clock);
    const customers: string[] = [];
    for (let count = 0; count < 4; count += 1) customers.push((await simulated.subscriber()).customerId);
    simulated.respond = async ({ type, body, id: identifier }) => {
      if (type !== 'invoice.created') return 200;
      // Four responses take longer together than the simulator waits for a single response.
      await clock.advance(6000);
      const customerId = String((JSON.parse(body) as { data: { object: { customer: unknown } } }).data.object.customer);
      await simulated.processor.reportUsage({ identifier, customerId, bytes: 40_000_000_000, at: clock.now() });
      return 200;
    };
    await simulated.endMonth();
    expect(await Promise.all(customers.map(invoicesOf))).toEqual(customers.map(() => [paid(400)]));
  });

  it('ends a subscription scheduled to end, with the minimum as its last item', async () => {
    const { customerId, subscriptionId } = await simulated.subscriber();
    await simulated.control(`/subscriptions/${subscriptionId}/cancel`);
    const ending = (await simulated.processor.readCustomer(customerId))?.subscription;
    const order = { customerId, subscriptionId, periodEnd: ending!.periodEnd!, wanted: true, hasEnded: false };
    await simulated.processor.setFinalMinimum(order);
    await simulated.processor.setFinalMinimum({ ...order, wanted: false });
    await simulated.processor.setFinalMinimum(order);
    await simulated.processor.setFinalMinimum(order);
    await report(customerId, 35_000_000_000);
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(350)]);
    expect((await simulated.processor.readCustomer(customerId))?.subscription).toMatchObject({
      id: subscriptionId,
      status: 'canceled',
    });
    // The month has ended, so items on its invoice are final.
    await simulated.processor.setFinalMinimum({ ...order, wanted: false });
    await simulated.processor.setFinalMinimum(order);
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(350)]);
    await eventually(() =>
      expect(simulated.deliveries.map(({ type }) => type)).toContain('customer.subscription.deleted'),
    );
  });

  it('puts the minimum on the draft invoice if the platform learns of the end only then', async () => {
    const { customerId, subscriptionId } = await simulated.subscriber();
    await simulated.control(`/subscriptions/${subscriptionId}/cancel`);
    await report(customerId, 35_000_000_000);
    const addMinimum = async (): Promise<void> => {
      const ended = (await simulated.processor.readCustomer(customerId))!.subscription!;
      expect(ended).toMatchObject({ status: 'canceled', cancelsAtPeriodEnd: true });
      const order = { customerId, subscriptionId, periodEnd: ended.periodEnd!, wanted: true, hasEnded: true };
      await simulated.processor.setFinalMinimum(order);
    };
    simulated.respond = async ({ type }) => {
      // Events can be delivered repeatedly, but the minimum must be added once.
      if (type === 'invoice.created') for (const _time of [1, 2]) await addMinimum();
      return 200;
    };
    await simulated.endMonth();
    expect(await invoicesOf(customerId)).toEqual([paid(350)]);
    // The invoice is final, so adding the minimum has no effect any more.
    await addMinimum();
    expect(await invoicesOf(customerId)).toEqual([paid(350)]);
  });

  it('allows a new subscription after the previous one ended', async () => {
    const { customerId, subscriptionId } = await simulated.subscriber();
    await simulated.control(`/subscriptions/${subscriptionId}/cancel`);
    await simulated.endMonth();
    const order = { customerId, userId: customerId, idempotencyKey: `subscribe:${customerId}:2` };
    const next = await simulated.processor.subscribe(order);
    expect(next.id).not.toBe(subscriptionId);
    expect((await simulated.processor.readCustomer(customerId))?.subscription).toEqual(next);
  });
});

describe('a failing card', () => {
  const statusOf = async (customerId: string) =>
    (await simulated.processor.readCustomer(customerId))?.subscription?.status;

  it('makes the subscription past due until a working card pays', async () => {
    const { customerId } = await simulated.subscriber('fails_later');
    await simulated.endMonth();
    expect(await statusOf(customerId)).toBe('past_due');
    const [invoice] = await simulated.processor.invoices(customerId);
    expect(invoice).toMatchObject({ status: 'open', total: 300, amount_paid: 0, attempt_count: 1 });
    expect((await simulated.control(`/invoices/${String(invoice?.['id'])}/pay`)).body).toMatchObject({
      status: 'open',
    });
    await simulated.control(`/customers/${customerId}/cards`, { card: 'good' });
    await simulated.control(`/invoices/${String(invoice?.['id'])}/pay`);
    expect(await statusOf(customerId)).toBe('active');
    expect(await invoicesOf(customerId)).toEqual([paid(300)]);
    await eventually(() => {
      const types = simulated.deliveries.map(({ type }) => type);
      expect(types.filter((type) => type === 'invoice.payment_failed')).toHaveLength(2);
      expect(types).toContain('invoice.paid');
    });
  });

  it('is retried a few times over the following days', async () => {
    const { customerId } = await simulated.subscriber('fails_later');
    await simulated.endMonth();
    await simulated.control('/clock', { advance_secs: 20 * 24 * 60 * 60 });
    expect(await simulated.processor.invoices(customerId)).toMatchObject([
      { status: 'open', attempt_count: 4, next_payment_attempt: null },
    ]);
    await simulated.control(`/customers/${customerId}/cards`, { card: 'good' });
    await simulated.endMonth();
    expect(await simulated.processor.invoices(customerId)).toMatchObject([{ status: 'paid' }, { status: 'open' }]);
    expect(await statusOf(customerId)).toBe('past_due');
  });
});

describe('usage reported to the simulator', () => {
  it('is refused with times that the real processor refuses, and for unknown customers', async () => {
    const { customerId } = await simulated.subscriber();
    const refused = { code: 'BILLING_PROCESSOR_REFUSED' };
    const event = { identifier: 'x', customerId, bytes: 1, at: Date.now() };
    await expect(simulated.processor.reportUsage({ ...event, at: event.at - 36 * 86_400_000 })).rejects.toMatchObject(
      refused,
    );
    await expect(simulated.processor.reportUsage({ ...event, at: event.at + 10 * 60_000 })).rejects.toMatchObject(
      refused,
    );
    await expect(simulated.processor.reportUsage({ ...event, customerId: 'cus_x' })).rejects.toMatchObject(refused);
    // Rejected usage was not counted, so the identifier is still unused.
    await simulated.processor.reportUsage(event);
    expect(await simulated.processor.meteredBytes({ customerId, from: event.at, to: event.at + 1 })).toBe(1);
  });
});
