// A running simulator with somebody who listens to its webhooks, for tests of what uses it.
import { cp } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Clock, createLogger, systemClock } from '@tunnel/runtime';
import { monthWithRoom, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { createProcessor } from '../processor/create-processor.ts';
import type { Processor } from '../processor/processor.ts';
import { Simulator } from './simulator.ts';

export const SILENT = createLogger({ format: 'json', level: 'silent' });
export const PRICES = { minimumCents: 300, priceCentsPerGb: 10 };

/** What a test takes on a busy machine. */
const ROOM_MS = 30_000;

/** Time that flies: what waits for seconds is over in a moment. */
export const quickClock = (times = 20): Clock => {
  const [wall, start] = [Date.now(), performance.now()];
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

export class SimulatorScene {
  readonly deliveries: Delivery[] = [];
  /** What a delivery is answered; it may take its time. */
  respond: (delivery: Delivery) => number | Promise<number> = () => 200;
  simulator: Simulator;
  readonly processor: Processor;
  readonly #receiver: Server;
  readonly #root: TemporaryDirectory;
  readonly #clock: Clock;
  folder: string;

  static async open(clock: Clock = systemClock): Promise<SimulatorScene> {
    await monthWithRoom(ROOM_MS);
    const scene = new SimulatorScene(await temporaryDirectory(), clock);
    await new Promise<void>((resolve) => scene.#receiver.listen(0, '127.0.0.1', resolve));
    await scene.simulator.start();
    return scene;
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
    this.processor = createProcessor({
      secretKey: this.simulator.secretKey,
      webhookSecret: () => this.simulator.webhookSecret,
      apiUrl: () => this.simulator.url,
      prices: PRICES,
      logger: SILENT,
    });
  }

  /** It stops and starts again on what it kept. */
  async restart(): Promise<void> {
    await this.simulator.stop();
    await this.simulator.start();
  }

  /** As after kill -9 at this moment: another one begins on a copy of the files, the old one is never asked again. */
  async crash(spoil: (folder: string) => Promise<void> = async () => {}): Promise<void> {
    const copy = `${this.folder}-again`;
    await cp(this.folder, copy, { recursive: true });
    await spoil(copy);
    await this.simulator.stop();
    this.folder = copy;
    this.simulator = this.#make(copy);
    await this.simulator.start();
  }

  /** One call of /v1 as it stands on the wire. */
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

  /** A customer with a card on file that is the default. */
  async customerWithCard(card: 'good' | 'fails_later' = 'good', name = `user-${Math.random()}`): Promise<string> {
    const order = { userId: name, email: `${name}@example.com`, name: null };
    const customerId = await this.processor.ensureCustomer(order);
    const { clientSecret } = await this.processor.createSetupIntent(customerId, `setup:${name}`);
    await this.control(`/setup_intents/${clientSecret}/confirm`, { card });
    const facts = await this.processor.readCustomer(customerId);
    await this.processor.usePaymentMethod(customerId, facts?.paymentMethods[0] ?? '');
    return customerId;
  }

  async subscriber(card: 'good' | 'fails_later' = 'good'): Promise<{ customerId: string; subscriptionId: string }> {
    const customerId = await this.customerWithCard(card);
    const order = { customerId, userId: customerId, idempotencyKey: `subscribe:${customerId}:1` };
    const { id } = await this.processor.subscribe(order);
    return { customerId, subscriptionId: id };
  }

  /** To a moment after the end of the month that the simulator is in. */
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

  #make(folder: string): Simulator {
    return new Simulator({
      folder,
      host: '127.0.0.1',
      port: 0,
      clock: this.#clock,
      logger: SILENT,
      webhookUrl: () => `http://127.0.0.1:${(this.#receiver.address() as AddressInfo).port}/billing/webhook`,
    });
  }
}
