import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quickClock, SimulatorHarness } from '../simulator.fixture.ts';

let harness: SimulatorHarness;

beforeEach(async () => {
  harness = await SimulatorHarness.open();
});
afterEach(() => harness.close());

const LIFE = [
  'customer.created',
  'payment_method.attached',
  'setup_intent.succeeded',
  'customer.updated',
  'customer.subscription.created',
];
const typesOf = (): string[] => harness.deliveries.map(({ type }) => type);

describe('simulated webhooks', () => {
  it('arrive once and in order, with a signature that the Stripe SDK accepts', async () => {
    const { customerId } = await harness.subscriber();
    await eventually(() => expect(typesOf()).toEqual(LIFE));
    for (const { body, signature, type, id } of harness.deliveries) {
      const secret = harness.simulator.webhookSecret.reveal();
      const event = harness.stripe.webhooks.constructEvent(body, signature, secret);
      const about = type.startsWith('customer.') && !type.includes('subscription') ? 'id' : 'customer';
      expect(event).toMatchObject({ id, type, data: { object: { [about]: customerId } } });
    }
  });

  it('report the end of a month', async () => {
    await harness.subscriber();
    await eventually(() => expect(typesOf()).toEqual(LIFE));
    await harness.endMonth();
    await eventually(() =>
      expect(typesOf().slice(LIFE.length)).toEqual([
        'invoice.created',
        'customer.subscription.updated',
        'invoice.finalized',
        'invoice.paid',
      ]),
    );
  });

  it('are retried in order until they are accepted', async () => {
    let away = 3;
    harness.respond = () => {
      away -= 1;
      return away >= 0 ? 503 : 200;
    };
    await harness.subscriber();
    await eventually(() => expect(new Set(typesOf())).toEqual(new Set(LIFE)));
    expect(typesOf()).toEqual([LIFE[0], LIFE[0], LIFE[0], ...LIFE]);
    expect(new Set(harness.deliveries.slice(0, 4).map(({ id, body }) => id + body)).size).toBe(1);
  });

  it('with a permanent refusal do not block later webhooks', async () => {
    await harness.close();
    harness = await SimulatorHarness.open(quickClock());
    harness.respond = ({ type }) => (type === 'customer.created' ? 400 : 200);
    await harness.subscriber();
    await eventually(() => expect(new Set(typesOf())).toEqual(new Set(LIFE)), { timeoutMs: 10_000 });
    expect(typesOf().filter((type) => type === 'customer.created')).toHaveLength(5);
  });

  it('survive a restart until they are accepted', async () => {
    harness.respond = () => 500;
    await harness.subscriber();
    await harness.restart();
    harness.deliveries.length = 0;
    harness.respond = () => 200;
    await eventually(() => expect(new Set(typesOf())).toEqual(new Set(LIFE)));
  });

  it('arrive two times each in the mode twice', async () => {
    await harness.control('/webhooks', { mode: 'twice' });
    await harness.subscriber();
    await eventually(() => expect(typesOf()).toEqual(LIFE.flatMap((type) => [type, type])));
    expect(new Set(harness.deliveries.map(({ id }) => id)).size).toBe(LIFE.length);
  });

  it('arrive 3 s after the event in the mode late', async () => {
    await harness.close();
    const clock = quickClock(4);
    harness = await SimulatorHarness.open(clock);
    await harness.control('/webhooks', { mode: 'late' });
    const seen: number[] = [];
    harness.respond = () => {
      seen.push(clock.monotonic());
      return 200;
    };
    const began = clock.monotonic();
    const customer = await harness.customerWithCard();
    // Both times are taken before the event, so a slow response can only lengthen the measured delay.
    const lastBegan = clock.monotonic();
    await harness.stripe.customers.update(customer, { name: 'Ada' });
    await eventually(() => expect(seen).toHaveLength(5));
    expect(typesOf()).toEqual([...LIFE.slice(0, 4), 'customer.updated']);
    expect(seen[0]! - began).toBeGreaterThan(3000);
    expect(seen[4]! - lastBegan).toBeGreaterThan(3000);
  });

  it('arrive once each in any order in the mode shuffle', async () => {
    await harness.control('/webhooks', { mode: 'shuffle' });
    for (let count = 0; count < 4; count += 1) await harness.subscriber();
    await eventually(() => expect(typesOf().sort()).toEqual([...LIFE, ...LIFE, ...LIFE, ...LIFE].sort()));
    expect(new Set(harness.deliveries.map(({ id }) => id)).size).toBe(4 * LIFE.length);
  });

  it('keep their mode after a restart, and reject an unknown mode', async () => {
    await harness.control('/webhooks', { mode: 'twice' });
    await harness.restart();
    const state = (await (await fetch(`${harness.simulator.url}/_sim`)).json()) as { webhooks: object };
    expect(state.webhooks).toEqual({ mode: 'twice', waiting: 0 });
    expect((await harness.control('/webhooks', { mode: 'never' })).status).toBe(400);
    expect((await harness.control('/webhooks')).status).toBe(400);
  });
});
