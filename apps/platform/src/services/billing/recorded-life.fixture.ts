// Recording of a customer's whole life at the simulator: the webhooks sent by each step, and the customer's facts after the step. For
// tests only.

import type { Delivery } from '@tunnel/simulator/fixture';
import { eventually } from '@tunnel/testkit';
import type { CustomerFacts } from '../../billing/processor/processor.ts';
import type { SimulatedProcessor } from '../../billing/processor/simulated-processor.fixture.ts';

export interface LifeStep {
  readonly name: string;
  readonly deliveries: readonly Delivery[];
  readonly facts: CustomerFacts;
}

export interface RecordedLife {
  readonly customerId: string;
  readonly steps: readonly LifeStep[];
}

const GB = 1_000_000_000;

export const recordLife = async (simulated: SimulatedProcessor, userId: string): Promise<RecordedLife> => {
  const { processor } = simulated;
  const customerId = await processor.ensureCustomer({ userId, email: `${userId}@example.com`, name: null });
  const steps: LifeStep[] = [];
  const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const before = simulated.deliveries.length;
    await work();
    await allDelivered(simulated);
    const facts = await processor.readCustomer(customerId);
    if (facts === null) throw new Error('the customer is gone');
    steps.push({ name, facts, deliveries: simulated.deliveries.slice(before) });
  };
  const idOfSubscription = async (): Promise<string> =>
    (await processor.readCustomer(customerId))?.subscription?.id ?? '';
  const card = (kind: string) => simulated.control(`/customers/${customerId}/cards`, { card: kind });
  const use = (month: number, bytes: number) =>
    processor.reportUsage({ identifier: `${userId}-${month}`, customerId, bytes, at: Date.now() });

  await step('attach', async () => {
    const { clientSecret } = await processor.createSetupIntent(customerId, `setup:${userId}`);
    await simulated.control(`/setup_intents/${clientSecret}/confirm`, { card: 'good' });
  });
  await step('subscribe', async () => {
    const [method = ''] = (await processor.readCustomer(customerId))?.paymentMethods ?? [];
    await processor.usePaymentMethod(customerId, method);
    await processor.subscribe({ customerId, userId, idempotencyKey: `subscribe:${userId}:1` });
  });
  await step('month end, paid', async () => {
    await use(1, 31 * GB);
    await simulated.endMonth();
  });
  await step('month end, failed', async () => {
    await card('fails_later');
    await simulated.endMonth();
  });
  await step('paid after all', async () => {
    await card('good');
    const open = (await processor.invoices(customerId)).filter(({ status }) => status === 'open');
    for (const { id } of open) await simulated.control(`/invoices/${String(id)}/pay`);
  });
  await step('set to end', async () => simulated.control(`/subscriptions/${await idOfSubscription()}/cancel`));
  await step('kept', async () => simulated.control(`/subscriptions/${await idOfSubscription()}/keep`));
  await step('set to end again', async () => simulated.control(`/subscriptions/${await idOfSubscription()}/cancel`));
  await step('deleted', () => simulated.endMonth());
  return { customerId, steps };
};

const allDelivered = (simulated: SimulatedProcessor): Promise<void> =>
  eventually(async () => {
    const { webhooks } = (await (await fetch(`${simulated.simulator.url}/_sim`)).json()) as {
      webhooks: { waiting: number };
    };
    if (webhooks.waiting > 0) throw new Error('events wait');
  });
