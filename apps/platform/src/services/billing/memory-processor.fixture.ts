// In-memory payment processor with facts set by the test and failures on command. For tests only.
import { Fault } from '@tunnel/errors';
import type {
  CustomerFacts,
  CustomerOrder,
  FinalMinimumOrder,
  Processor,
  ProcessorEvent,
  SubscribeOrder,
  SubscriptionFacts,
} from '../../billing/processor/processor.ts';

type Mood = 'well' | 'away' | 'refuses';

const NOTHING: CustomerFacts = {
  email: null,
  defaultPaymentMethod: null,
  paymentMethods: [],
  card: null,
  subscription: null,
};

export const PERIOD_END = Date.UTC(2030, 6, 1);

export class MemoryProcessor implements Processor {
  mood: Mood = 'well';
  /** Moods of single methods, which override the general mood. */
  moodOf: Partial<Record<keyof Processor, Mood>> = {};
  /** Promise that every call awaits first. */
  gate: Promise<void> = Promise.resolve();
  /** Runs right after subscriptions were ended. A throw simulates a process that dies at this point. */
  afterEnd: () => void = () => {};
  readonly calls: { readonly name: keyof Processor; readonly input: unknown }[] = [];
  readonly customers = new Map<string, CustomerFacts>();
  readonly #subscriptionOfKey = new Map<string, SubscriptionFacts>();
  #made = 0;

  callsOf(name: keyof Processor): unknown[] {
    return this.calls.filter((call) => call.name === name).map(({ input }) => input);
  }

  factsOf(customerId: string): CustomerFacts {
    return this.customers.get(customerId) ?? NOTHING;
  }

  change(customerId: string, change: Partial<CustomerFacts>): void {
    this.customers.set(customerId, { ...this.factsOf(customerId), ...change });
  }

  changeSubscription(customerId: string, change: Partial<SubscriptionFacts>): void {
    const { subscription } = this.factsOf(customerId);
    if (subscription !== null) this.change(customerId, { subscription: { ...subscription, ...change } });
  }

  async ensureCustomer(user: CustomerOrder): Promise<string> {
    await this.#call('ensureCustomer', user);
    const id = `cus_${user.userId}_${[...this.customers.keys()].filter((known) => known.includes(user.userId)).length}`;
    this.customers.set(id, { ...NOTHING, email: user.email });
    return id;
  }

  async createSetupIntent(customerId: string, idempotencyKey: string): Promise<{ clientSecret: string }> {
    await this.#call('createSetupIntent', { customerId, idempotencyKey });
    this.#expect(customerId);
    return { clientSecret: `seti_${idempotencyKey}_secret` };
  }

  async readCustomer(customerId: string): Promise<CustomerFacts | null> {
    await this.#call('readCustomer', customerId);
    return this.customers.get(customerId) ?? null;
  }

  async setEmail(customerId: string, email: string): Promise<void> {
    await this.#call('setEmail', { customerId, email });
    this.change(customerId, { email });
  }

  async usePaymentMethod(customerId: string, paymentMethodId: string): Promise<void> {
    await this.#call('usePaymentMethod', paymentMethodId);
    this.change(customerId, { defaultPaymentMethod: paymentMethodId });
  }

  async subscribe(order: SubscribeOrder): Promise<SubscriptionFacts> {
    await this.#call('subscribe', order);
    const { startedAt } = { startedAt: Date.UTC(2030, 5, 15, 11) };
    const known = this.#subscriptionOfKey.get(order.idempotencyKey);
    const subscription = known ?? {
      id: `sub_${(this.#made += 1)}`,
      status: 'active',
      cancelsAtPeriodEnd: false,
      periodEnd: PERIOD_END,
      startedAt,
    };
    this.#subscriptionOfKey.set(order.idempotencyKey, subscription);
    this.change(order.customerId, { subscription });
    return subscription;
  }

  async keepSubscription(subscriptionId: string): Promise<SubscriptionFacts> {
    await this.#call('keepSubscription', subscriptionId);
    for (const [id, { subscription }] of this.customers) {
      if (subscription?.id !== subscriptionId) continue;
      this.changeSubscription(id, { cancelsAtPeriodEnd: false });
      return { ...subscription, cancelsAtPeriodEnd: false };
    }
    throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no such subscription' });
  }

  async endSubscriptions(customerId: string): Promise<void> {
    await this.#call('endSubscriptions', customerId);
    this.changeSubscription(customerId, { status: 'canceled' });
    this.afterEnd();
  }

  async setFinalMinimum(order: FinalMinimumOrder): Promise<void> {
    await this.#call('setFinalMinimum', order);
  }

  async reportUsage(): Promise<void> {}

  async meteredBytes(): Promise<number> {
    return 0;
  }

  async openPortal(order: { customerId: string; returnUrl: string }): Promise<string> {
    await this.#call('openPortal', order);
    this.#expect(order.customerId);
    return `https://portal.example.com/${order.customerId}`;
  }

  async invoices(customerId: string): Promise<readonly Record<string, unknown>[]> {
    await this.#call('invoices', customerId);
    return [{ id: 'in_1', customer: customerId }];
  }

  async readEvent(rawBody: Uint8Array | string, signature: string): Promise<ProcessorEvent> {
    if (signature !== 'good') throw new Fault('WEBHOOK_SIGNATURE');
    const text = typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody);
    return JSON.parse(text) as ProcessorEvent;
  }

  async #call(name: keyof Processor, input: unknown): Promise<void> {
    this.calls.push({ name, input });
    await this.gate;
    const mood = this.moodOf[name] ?? this.mood;
    if (mood === 'away') throw new Fault('BILLING_PROCESSOR_AWAY');
    if (mood === 'refuses') throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no' });
  }

  #expect(customerId: string): void {
    if (!this.customers.has(customerId)) throw new Fault('BILLING_PROCESSOR_REFUSED', { reason: 'no such customer' });
  }
}
