// Guarantees of the payment processor, tested against the simulator, and against Stripe if a test key is given.
import { randomUUID } from 'node:crypto';
import { createLogger, Secret } from '@tunnel/runtime';
import { signWebhook } from '@tunnel/simulator/fixture';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProcessor } from './create-processor.ts';
import type { Processor } from './processor.ts';

/** Differences between the simulator and Stripe: actions of a browser or a person. */
export interface ProcessorBench {
  readonly processor: Processor;
  readonly webhookSecret: Secret;
  /** Confirms a setup intent. Rejects if the card is declined. */
  confirm(clientSecret: string, card: 'good' | 'declined'): Promise<void>;
  /** Schedules the end of a subscription, as the customer portal does. */
  setToEnd(subscriptionId: string): Promise<void>;
  /** Returns the number of items waiting for the next invoice. */
  waitingItems(customerId: string): Promise<number>;
  /** Time until reported usage appears in the totals, in milliseconds. Stripe sums usage with a delay. */
  readonly sumsWithinMs: number;
  close(): Promise<void>;
}

const nextMonth = (): number => {
  const now = new Date();
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
};

export const describeProcessor = (name: string, open: () => Promise<ProcessorBench>): void => {
  describe(`the payment processor: ${name}`, () => {
    let bench: ProcessorBench;
    let processor: Processor;

    beforeAll(async () => {
      bench = await open();
      processor = bench.processor;
    });
    afterAll(() => bench.close());

    const newCustomer = async (): Promise<string> => {
      const userId = randomUUID();
      return processor.ensureCustomer({ userId, email: `${userId}@example.com`, name: 'Ann' });
    };

    const withCard = async (): Promise<string> => {
      const customerId = await newCustomer();
      const { clientSecret } = await processor.createSetupIntent(customerId, randomUUID());
      await bench.confirm(clientSecret, 'good');
      const facts = await processor.readCustomer(customerId);
      await processor.usePaymentMethod(customerId, facts!.paymentMethods[0]!);
      return customerId;
    };

    const subscribed = async () => {
      const customerId = await withCard();
      const order = { customerId, userId: randomUUID(), idempotencyKey: randomUUID() };
      return { customerId, order, subscription: await processor.subscribe(order) };
    };

    describeCustomers(() => ({ bench, processor, newCustomer, withCard }));

    it('repeated subscribe calls return one subscription, which lasts to the end of the month', async () => {
      const { customerId, order, subscription } = await subscribed();
      expect(subscription).toMatchObject({ status: 'active', cancelsAtPeriodEnd: false, periodEnd: nextMonth() });
      expect(Math.abs(subscription.startedAt - Date.now())).toBeLessThan(60_000);
      const again = await processor.subscribe(order);
      const other = await processor.subscribe({ ...order, idempotencyKey: randomUUID() });
      expect([again.id, other.id]).toEqual([subscription.id, subscription.id]);
      expect((await processor.readCustomer(customerId))?.subscription).toEqual(subscription);
      expect(await processor.invoices(customerId)).toSatisfy((all: { total: number }[]) =>
        all.every(({ total }) => total === 0),
      );
    });

    it('keepSubscription reverts a scheduled cancellation', async () => {
      const { customerId, subscription } = await subscribed();
      await bench.setToEnd(subscription.id);
      const ending = await processor.readCustomer(customerId);
      expect(ending?.subscription).toEqual({ ...subscription, cancelsAtPeriodEnd: true });
      expect(await processor.keepSubscription(subscription.id)).toEqual(subscription);
      expect(await processor.keepSubscription(subscription.id)).toEqual(subscription);
    });

    it('setFinalMinimum adds the final minimum once, removes it, and adds it again', async () => {
      const { customerId, subscription } = await subscribed();
      const order = {
        customerId,
        subscriptionId: subscription.id,
        periodEnd: subscription.periodEnd!,
        hasEnded: false,
      };
      for (const wanted of [true, true, false, false, true, false, true]) {
        await processor.setFinalMinimum({ ...order, wanted });
        expect(await bench.waitingItems(customerId)).toBe(wanted ? 1 : 0);
      }
    });

    it('endSubscriptions cancels at once and invoices pending items; repeating it is harmless', async () => {
      const { customerId, subscription } = await subscribed();
      const order = { customerId, subscriptionId: subscription.id, periodEnd: subscription.periodEnd! };
      await processor.setFinalMinimum({ ...order, wanted: true, hasEnded: false });
      await processor.endSubscriptions(customerId);
      await processor.endSubscriptions(customerId);
      const facts = await processor.readCustomer(customerId);
      expect(facts?.subscription).toMatchObject({ id: subscription.id, status: 'canceled' });
      expect(await bench.waitingItems(customerId)).toBe(0);
      expect(await processor.invoices(customerId)).toSatisfy((all: { total: number }[]) =>
        all.some(({ total }) => total > 0),
      );
      await processor.endSubscriptions(await newCustomer());
    });

    it('usage is counted once per identifier and summed by time range', async () => {
      const { customerId } = await subscribed();
      const at = Date.now();
      const event = { identifier: `${customerId}-1`, customerId, bytes: 5_000_000_007, at };
      await processor.reportUsage(event);
      await processor.reportUsage(event);
      // Reports the same identifier with a different time, which still counts as the same event.
      await processor.reportUsage({ ...event, at: at - 1000 });
      await processor.reportUsage({ ...event, identifier: `${customerId}-2`, bytes: 93 });
      const range = { customerId, from: at - 3_600_000, to: at + 60_000 };
      await eventually(async () => expect(await processor.meteredBytes(range)).toBe(5_000_000_100), {
        timeoutMs: bench.sumsWithinMs,
      });
      expect(await processor.meteredBytes({ ...range, to: at - 1_800_000 })).toBe(0);
      expect(await processor.meteredBytes({ ...range, customerId: await newCustomer() })).toBe(0);
    });

    it('openPortal returns an HTTP or HTTPS URL', async () => {
      const returnUrl = 'https://platform.example/app/billing';
      const url = await processor.openPortal({ customerId: await newCustomer(), returnUrl });
      expect(new URL(url).protocol).toMatch(/^https?:$/);
    });

    it("an unknown customer is refused with the processor's message", async () => {
      await expect(processor.createSetupIntent('cus_nobody', randomUUID())).rejects.toMatchObject({
        code: 'BILLING_PROCESSOR_REFUSED',
        message: expect.stringContaining('No such customer'),
      });
    });

    describeSignatures(() => bench);
  });

  describeAway();
};

interface Parts {
  readonly bench: ProcessorBench;
  readonly processor: Processor;
  newCustomer(): Promise<string>;
  withCard(): Promise<string>;
}

const describeCustomers = (parts: () => Parts): void => {
  it('ensureCustomer creates one customer per user, even under repeated and concurrent calls', async () => {
    const { processor } = parts();
    const userId = randomUUID();
    const order = { userId, email: `${userId}@example.com`, name: null };
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => processor.ensureCustomer(order)));
    expect(others).toEqual([first, first]);
    expect(await processor.ensureCustomer({ ...order, name: 'Ann' })).toBe(first);
    await processor.setEmail(first!, `new-${order.email}`);
    expect(await processor.readCustomer(first!)).toEqual({
      email: `new-${order.email}`,
      defaultPaymentMethod: null,
      paymentMethods: [],
      card: null,
      subscription: null,
    });
    expect(await processor.readCustomer('cus_nobody')).toBeNull();
  });

  it('a setup intent adds a card, which becomes the default through usePaymentMethod', async () => {
    const { processor, bench, newCustomer } = parts();
    const customerId = await newCustomer();
    const key = randomUUID();
    const { clientSecret } = await processor.createSetupIntent(customerId, key);
    expect(await processor.createSetupIntent(customerId, key)).toEqual({ clientSecret });
    await bench.confirm(clientSecret, 'good');
    const facts = await processor.readCustomer(customerId);
    const card = { brand: 'visa', last4: '4242' };
    expect(facts).toMatchObject({ defaultPaymentMethod: null, paymentMethods: [expect.stringMatching(/^pm_/)], card });
    await processor.usePaymentMethod(customerId, facts!.paymentMethods[0]!);
    expect(await processor.readCustomer(customerId)).toMatchObject({
      defaultPaymentMethod: facts!.paymentMethods[0],
      card,
    });
  });

  it('a declined card is not added, and another card can be added afterwards', async () => {
    const { processor, bench, newCustomer } = parts();
    const customerId = await newCustomer();
    const { clientSecret } = await processor.createSetupIntent(customerId, randomUUID());
    await expect(bench.confirm(clientSecret, 'declined')).rejects.toThrow(/declined/);
    expect(await processor.readCustomer(customerId)).toMatchObject({ paymentMethods: [] });
    await bench.confirm(clientSecret, 'good');
    expect((await processor.readCustomer(customerId))?.paymentMethods).toHaveLength(1);
  });
};

const BODY = JSON.stringify({
  id: 'evt_1',
  object: 'event',
  type: 'invoice.paid',
  created: 1_700_000_000,
  data: { object: { object: 'invoice', customer: 'cus_1', description: 'Ünïcode' } },
});

const NUL_BODY = BODY.replace('evt_1', String.raw`evt_\u0000`);

const describeSignatures = (bench: () => ProcessorBench): void => {
  const now = (): number => Math.floor(Date.now() / 1000);
  const sign = (body: string, at = now(), secret = bench().webhookSecret): string => signWebhook(body, secret, at);
  const refused = { code: 'WEBHOOK_SIGNATURE', status: 400 };

  it('readEvent accepts a signed event as text and as bytes', async () => {
    const event = { id: 'evt_1', type: 'invoice.paid', customerId: 'cus_1', createdAt: 1_700_000_000_000 };
    expect(await bench().processor.readEvent(BODY, sign(BODY))).toEqual(event);
    expect(await bench().processor.readEvent(new TextEncoder().encode(BODY), sign(BODY))).toEqual(event);
  });

  it('readEvent finds the customer of an event', async () => {
    const about = async (object: object): Promise<string | null> => {
      const body = JSON.stringify({ id: 'evt_2', type: 'x', created: 1, data: { object } });
      return (await bench().processor.readEvent(body, sign(body))).customerId;
    };
    expect(await about({ object: 'customer', id: 'cus_7' })).toBe('cus_7');
    expect(await about({ object: 'subscription', customer: { id: 'cus_8' } })).toBe('cus_8');
    expect(await about({ object: 'price' })).toBeNull();
    expect(await about({ object: 'invoice', customer: 'cus_\0' })).toBeNull();
  });

  it.each([
    ['another secret', () => ({ signature: sign(BODY, now(), new Secret('whsec_other')) })],
    ['a changed byte', () => ({ body: BODY.replace('cus_1', 'cus_2'), signature: sign(BODY) })],
    ['a time long ago', () => ({ signature: sign(BODY, now() - 301) })],
    ['no header', () => ({ signature: '' })],
    ['a header without a signature', () => ({ signature: `t=${now()}` })],
    ['nonsense', () => ({ signature: 'v1=0' })],
    ['something that is no event', () => ({ body: '{"id":1}', signature: sign('{"id":1}') })],
    ['an id that no table takes', () => ({ body: NUL_BODY, signature: sign(NUL_BODY) })],
    ['something that is no JSON', () => ({ body: 'x', signature: sign('x') })],
    ['nothing', () => ({ body: '', signature: sign('') })],
  ])('readEvent rejects %s', async (_what, make) => {
    const { body = BODY, signature } = make() as { body?: string; signature: string };
    await expect(bench().processor.readEvent(body, signature)).rejects.toMatchObject(refused);
    await expect(bench().processor.readEvent(new TextEncoder().encode(body), signature)).rejects.toMatchObject(refused);
  });

  it('readEvent rejects different bytes that decode to the signed text', async () => {
    const text = BODY.replace('Ünïcode', '\uFFFD');
    const bytes = new TextEncoder().encode(text);
    const at = bytes.indexOf(0xef);
    const other = Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]);
    await expect(bench().processor.readEvent(other, sign(text))).rejects.toMatchObject(refused);
    const withMark = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
    await expect(bench().processor.readEvent(withMark, sign(text))).rejects.toMatchObject(refused);
  });
};

const describeAway = (): void => {
  it('an unreachable processor is reported as BILLING_PROCESSOR_AWAY, a retryable 503', async () => {
    const processor = createProcessor({
      secretKey: new Secret('sk_test_nobody'),
      webhookSecret: () => new Secret('whsec_nobody'),
      // Port 9 is the discard service, and usually closed.
      apiUrl: () => 'http://127.0.0.1:9',
      prices: { minimumCents: 300, priceCentsPerGb: 10 },
      logger: createLogger({ format: 'json', level: 'silent' }),
    });
    await expect(processor.readCustomer('cus_1')).rejects.toMatchObject({
      code: 'BILLING_PROCESSOR_AWAY',
      status: 503,
      retryable: true,
    });
  });
};
