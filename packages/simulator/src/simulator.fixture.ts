// A running simulator with a receiver for its webhooks, and a merchant that calls the API with the official SDK. For tests only.
import { cp } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Clock, createLogger, systemClock } from '@tunnel/runtime';
import { monthWithRoom, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Stripe } from 'stripe';
import { Simulator } from './simulator.ts';

export { apiRoutes } from './api/api.ts';
export { findRoute } from './api/api-route.ts';
export { signWebhook } from './web/webhooks.ts';

export const SILENT = createLogger({ format: 'json', level: 'silent' });

const GB = 10 ** 9;
const METER_EVENT = 'tunnel_bytes';

/** Time that a test can take on a busy machine; a test does not start if less time is left in the month. */
const ROOM_MS = 30_000;

/** A clock that runs `times` as fast as real time, so that delays of seconds pass in a moment. */
export const quickClock = (times = 20): Clock => {
  const wall = Date.now();
  const start = performance.now();
  const elapsed = (): number => (performance.now() - start) * times;
  return {
    now: () => wall + elapsed(),
    monotonic: elapsed,
    setTimeout: (fn, ms) => systemClock.setTimeout(fn, ms / times),
    setInterval: (fn, ms) => systemClock.setInterval(fn, ms / times),
  };
};

export interface Delivery {
  readonly body: string;
  readonly signature: string;
  readonly type: string;
  readonly id: string;
}

export class SimulatorHarness {
  readonly deliveries: Delivery[] = [];
  /** Returns the status for a webhook delivery, possibly later. */
  respond: (delivery: Delivery) => number | Promise<number> = () => 200;
  simulator: Simulator;
  readonly #receiver: Server;
  readonly #root: TemporaryDirectory;
  readonly #clock: Clock;
  folder: string;
  #client: { readonly url: string; readonly stripe: Stripe } | undefined;

  static async open(clock: Clock = systemClock): Promise<SimulatorHarness> {
    await monthWithRoom(ROOM_MS);
    const harness = new SimulatorHarness(await temporaryDirectory(), clock);
    await new Promise<void>((resolve) => harness.#receiver.listen(0, '127.0.0.1', resolve));
    await harness.simulator.start();
    return harness;
  }

  private constructor(root: TemporaryDirectory, clock: Clock) {
    this.#root = root;
    this.folder = join(root.path, 'simulator');
    this.#clock = clock;
    this.#receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8');
        const { type, id } = JSON.parse(body) as { type: string; id: string };
        const delivery = { body, signature: String(request.headers['stripe-signature']), type, id };
        this.deliveries.push(delivery);
        void Promise.resolve(this.respond(delivery)).then((status) => response.writeHead(status).end());
      });
    });
    this.simulator = this.#make(this.folder);
  }

  /** The official SDK, connected to the simulator. The port can change after a restart. */
  get stripe(): Stripe {
    const { url, secretKey } = this.simulator;
    if (this.#client?.url !== url) {
      const { hostname: host, port } = new URL(url);
      const options = { protocol: 'http', host, port, telemetry: false, maxNetworkRetries: 0 } as const;
      this.#client = { url, stripe: new Stripe(secretKey.reveal(), options) };
    }
    return this.#client.stripe;
  }

  /** Stops the simulator and starts it again with the same files. */
  async restart(): Promise<void> {
    await this.simulator.stop();
    await this.simulator.start();
  }

  /** Simulates a SIGKILL: a new simulator starts on a copy of the files, and the old one gets no more calls. */
  async crash(spoil: (folder: string) => Promise<void> = async () => {}): Promise<void> {
    const copy = `${this.folder}-again`;
    await cp(this.folder, copy, { recursive: true });
    await spoil(copy);
    await this.simulator.stop();
    this.folder = copy;
    this.simulator = this.#make(copy);
    await this.simulator.start();
  }

  /** Sends a single raw call to the /v1 API. */
  call(method: string, path: string, form: Record<string, string> = {}, key?: string): Promise<Response> {
    return fetch(`${this.simulator.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.simulator.secretKey.reveal()}`,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(method === 'POST' ? { body: new URLSearchParams(form) } : {}),
    });
  }

  async control(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${this.simulator.url}/_sim${path}`, {
      method: 'POST',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async createCustomer(email: string, name?: string): Promise<string> {
    return (await this.stripe.customers.create({ email, ...(name === undefined ? {} : { name }) })).id;
  }

  /** Creates a setup intent and returns its client secret. */
  async createSetupIntent(customer: string): Promise<string> {
    const methods = { enabled: true, allow_redirects: 'never' } as const;
    const order = { customer, usage: 'off_session', automatic_payment_methods: methods } as const;
    return (await this.stripe.setupIntents.create(order)).client_secret ?? '';
  }

  /** Creates a customer with a default card. */
  async customerWithCard(card: 'good' | 'fails_later' = 'good', name = `user-${Math.random()}`): Promise<string> {
    const customer = await this.createCustomer(`${name}@example.com`);
    await this.control(`/setup_intents/${await this.createSetupIntent(customer)}/confirm`, { card });
    const { data } = await this.stripe.customers.listPaymentMethods(customer);
    const invoice_settings = { default_payment_method: data[0]?.id ?? '' };
    await this.stripe.customers.update(customer, { invoice_settings });
    return customer;
  }

  async subscriber(card: 'good' | 'fails_later' = 'good'): Promise<{ customerId: string; subscriptionId: string }> {
    const customerId = await this.customerWithCard(card);
    const { id } = await this.subscribe(customerId, `subscribe:${customerId}:1`);
    return { customerId, subscriptionId: id };
  }

  /** Subscribes a customer to 300 cents per month, with 30 GB included and 10 cents for every further GB. */
  async subscribe(customer: string, idempotencyKey: string): Promise<Stripe.Subscription> {
    const order = {
      customer,
      items: await this.#items(),
      off_session: true,
      proration_behavior: 'none',
      billing_cycle_anchor_config: { day_of_month: 1, hour: 0, minute: 0, second: 0 },
    } as const;
    return this.stripe.subscriptions.create(order, { idempotencyKey });
  }

  async reportUsage(customer: string, bytes: number, identifier: string, at: number): Promise<void> {
    await this.meter();
    const payload = { stripe_customer_id: customer, value: String(bytes) };
    const timestamp = Math.floor(at / 1000);
    await this.stripe.billing.meterEvents.create({ event_name: METER_EVENT, identifier, timestamp, payload });
  }

  /** Returns the id of the meter, which is created at the first use. */
  async meter(): Promise<string> {
    const { data } = await this.stripe.billing.meters.list();
    if (data[0] !== undefined) return data[0].id;
    const made = await this.stripe.billing.meters.create({
      display_name: 'Tunnel bytes',
      event_name: METER_EVENT,
      default_aggregation: { formula: 'sum' },
      customer_mapping: { type: 'by_id', event_payload_key: 'stripe_customer_id' },
      value_settings: { event_payload_key: 'value' },
    });
    return made.id;
  }

  async invoices(customer: string): Promise<Stripe.Invoice[]> {
    return (await this.stripe.invoices.list({ customer })).data;
  }

  /** Returns the customer and the customer's subscriptions as reported by the API. */
  async customerState(customer: string): Promise<object> {
    const found = await this.stripe.customers.retrieve(customer);
    const { data } = await this.stripe.subscriptions.list({ customer, status: 'all' });
    return { customer: found, subscriptions: data };
  }

  /** Advances the clock to shortly after the end of the simulator's current month. */
  async endMonth(): Promise<void> {
    const { now } = (await (await fetch(`${this.simulator.url}/_sim`)).json()) as { now: string };
    const date = new Date(now);
    const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    await this.control('/clock', { advance_secs: Math.ceil((end - date.getTime()) / 1000) + 1 });
  }

  async close(): Promise<void> {
    await this.simulator.stop();
    this.#receiver.closeAllConnections();
    await new Promise<void>((resolve) => this.#receiver.close(() => resolve()));
    await this.#root.close();
  }

  async #items(): Promise<{ price: string }[]> {
    const meter = await this.meter();
    const usd = { currency: 'usd', product_data: { name: 'Tunnel' } };
    const prices: (Stripe.PriceCreateParams & { lookup_key: string })[] = [
      { ...usd, lookup_key: 'fixed', unit_amount: 300, recurring: { interval: 'month' } },
      {
        ...usd,
        lookup_key: 'metered',
        recurring: { interval: 'month', usage_type: 'metered', meter },
        billing_scheme: 'tiered',
        tiers_mode: 'graduated',
        tiers: [
          { up_to: 30 * GB, unit_amount: 0 },
          { up_to: 'inf', unit_amount_decimal: Stripe.Decimal.from('0.00000001') },
        ],
      },
    ];
    const items: { price: string }[] = [];
    for (const order of prices) {
      const { data } = await this.stripe.prices.list({ lookup_keys: [order.lookup_key] });
      items.push({ price: (data[0] ?? (await this.stripe.prices.create(order))).id });
    }
    return items;
  }

  #make(folder: string): Simulator {
    return new Simulator({
      folder,
      host: '127.0.0.1',
      port: 0,
      portKey: 'port',
      clock: this.#clock,
      logger: SILENT,
      webhookUrl: () => `http://127.0.0.1:${(this.#receiver.address() as AddressInfo).port}/billing/webhook`,
    });
  }
}
