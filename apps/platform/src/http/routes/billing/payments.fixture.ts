// Billing over HTTP with the real simulator, which sends its webhooks here. Users identify themselves with a header. For tests only.

import { loadServerConfig } from '@tunnel/config/server';
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { createLogger, systemClock } from '@tunnel/runtime';
import { Simulator } from '@tunnel/simulator';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Billing } from '../../../billing/billing.ts';
import { accessOf } from '../../../billing/processor/simulated-processor.fixture.ts';
import { createTestDatabase, type TestDatabase } from '../../../db/test-database.fixture.ts';
import { upsertPlans } from '../../../services/plans/plans.ts';
import { openGate } from '../../server/gate.fixture.ts';
import { HttpServer } from '../../server/http-server.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addBillingRoutes } from './billing-routes.ts';

/** Fields of any response body. A field missing from a response is undefined despite its type. */
export interface ReplyBody {
  readonly code: string;
  readonly error: string;
  readonly client_secret: string;
  readonly payment_customer_id: string;
  readonly payment_subscription_id: string;
  readonly has_payment_method: boolean;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReplyBody;
}

export interface AskOptions {
  readonly json?: unknown;
  readonly raw?: string | Uint8Array;
  readonly headers?: Record<string, string>;
}

export class PaymentsFixture {
  readonly database: TestDatabase;
  readonly simulator: Simulator;
  readonly #settings = loadServerConfig({ env: {} }).platform;
  readonly #server: HttpServer;
  readonly #folder: TemporaryDirectory;

  static async open(): Promise<PaymentsFixture> {
    const fixture = new PaymentsFixture(await createTestDatabase(), await temporaryDirectory());
    await upsertPlans(fixture.database.db, fixture.#settings.plans);
    await fixture.simulator.start();
    await fixture.#server.start();
    return fixture;
  }

  private constructor(database: TestDatabase, folder: TemporaryDirectory) {
    this.database = database;
    this.#folder = folder;
    const logger = createLogger({ level: 'silent', format: 'json' });
    const settings = this.#settings;
    const app = createPlatformApp({ logger, settings });
    this.simulator = new Simulator({
      folder: folder.path,
      host: '127.0.0.1',
      port: 0,
      portKey: 'port',
      clock: systemClock,
      logger,
      webhookUrl: () => (this.#server.isOpen ? this.#url(BILLING_WEBHOOK_PATH) : null),
    });
    const simulator = accessOf(this);
    const context = { settings, db: database.db, clock: systemClock, logger };
    const { processor, locks, metering } = new Billing({ ...context, simulator });
    addBillingRoutes(app, {
      ...context,
      processor,
      locks,
      metering,
      requireUser: async (call, next) => {
        const userId = call.req.header('x-user');
        if (userId === undefined) throw new Fault('ACCESS_TOKEN_MISSING');
        call.set('actor', { kind: 'user', userId, epoch: 0 });
        await next();
      },
    });
    this.#server = new HttpServer({ host: '127.0.0.1', port: 0, app, gate: openGate(), clock: systemClock, logger });
  }

  async addUser(name: string, plan = 'free'): Promise<string> {
    const row = { email: `${name}@example.com`, plan, display_name: null, password_hash: null };
    const users = this.database.db.insertInto('users').values(row).returning('id');
    return (await users.executeTakeFirstOrThrow()).id;
  }

  async ask(user: string | null, method: string, path: string, options: AskOptions = {}): Promise<Reply> {
    const { json, raw, headers = {} } = options;
    const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
    const answer = await fetch(this.#url(path), {
      method,
      headers: {
        ...(user === null ? {} : { 'x-user': user }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: JSON.parse(text) as ReplyBody };
  }

  post(user: string | null, path: string, options: AskOptions = {}): Promise<Reply> {
    return this.ask(user, 'POST', path, options);
  }

  /** Performs an action of a person on the simulator's page. */
  async control(path: string, body: object = {}): Promise<Reply> {
    const url = `${this.simulator.url}/_sim${path}`;
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as ReplyBody };
  }

  /** Returns a list of objects as stored at the processor. */
  async atProcessor(path: string): Promise<Record<string, unknown>[]> {
    const authorization = `Bearer ${this.simulator.secretKey.reveal()}`;
    const answer = await fetch(`${this.simulator.url}/v1${path}`, { headers: { authorization } });
    return ((await answer.json()) as { data: Record<string, unknown>[] }).data;
  }

  async addCard(user: string, card: 'good' | 'declined' | 'fails_later' = 'good'): Promise<Reply> {
    const { body } = await this.post(user, '/billing/setup-intent');
    return this.control(`/setup_intents/${body.client_secret}/confirm`, { card });
  }

  async close(): Promise<void> {
    await this.#server.stop();
    await this.simulator.stop();
    await this.database.close();
    await this.#folder.close();
  }

  #url(path: string): string {
    return `http://127.0.0.1:${this.#server.address.port}${path}`;
  }
}
