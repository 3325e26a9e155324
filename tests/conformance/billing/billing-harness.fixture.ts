// A server with platform and payment simulator, test accounts that pay, and control calls for the simulator.
import type { BillingStatus, StartedSubscription } from '@tunnel/contract';
import { setPlan } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { UsageReportingEdge } from '../../system/usage-reporting-edge.fixture.ts';
import { type Answer, type Question } from '../platform/api-request.fixture.ts';
import { OPERATOR, type Person, PlatformHarness } from '../platform/platform-harness.fixture.ts';

/**
 * Timeout for billing changes. All tests run at the same time, webhooks arrive one after the other, and every poll takes processor time
 * from them.
 */
export const SOON = { timeoutMs: 60_000, intervalMs: 200 };
export const GB = 1_000_000_000;
/** Bytes that cost one cent. */
export const CENT = GB / 10;

export type Card = 'good' | 'declined' | 'fails_later';

export interface Payer extends Person {
  readonly subscriptionId: string;
}

/** An invoice as the payment processor returns it. Only the fields that tests use are declared. */
export interface Invoice {
  readonly id: string;
  readonly status: string;
  readonly total: number;
  readonly amount_paid: number;
  readonly lines: { readonly data: readonly { readonly amount: number }[] };
}

export class BillingHarness extends PlatformHarness {
  #edge: Promise<UsageReportingEdge> | undefined;
  #sharedPayer: Promise<Payer> | undefined;

  get simulatorUrl(): string {
    return this.server.run.simulator_url;
  }

  /** Sends a control call to the simulator. */
  async sim(path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${this.simulatorUrl}/_sim/${path}`, {
      method: 'POST',
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async billing({ token }: Pick<Person, 'token'>): Promise<BillingStatus> {
    const { status, body, text } = await this.get('/billing', token);
    if (status !== 200) throw new Error(`GET /billing: ${status} ${text}`);
    return body as BillingStatus;
  }

  /** Returns the billing status as soon as it satisfies the condition. */
  billingWhen(person: Pick<Person, 'token'>, isSo: (status: BillingStatus) => boolean): Promise<BillingStatus> {
    return eventually(async () => {
      const status = await this.billing(person);
      if (!isSo(status)) throw new Error(JSON.stringify(status));
      return status;
    }, SOON);
  }

  order(path: 'subscribe' | 'setup-intent', { token }: Pick<Person, 'token'>, more: Question = {}): Promise<Answer> {
    return this.ask('POST', `/billing/${path}`, { token, ...more });
  }

  async clientSecret(person: Pick<Person, 'token'>): Promise<string> {
    const { status, body, text } = await this.order('setup-intent', person);
    if (status !== 200) throw new Error(`setup-intent: ${status} ${text}`);
    return (body as { client_secret: string }).client_secret;
  }

  /** Adds a payment card. The simulator stands in for the browser in which the card would be entered. */
  async addCard(person: Pick<Person, 'token'>, card: Card = 'good'): Promise<number> {
    const intent = await this.clientSecret(person);
    return (await this.sim(`setup_intents/${intent}/confirm`, { card })).status;
  }

  async subscribe(person: Pick<Person, 'token'>): Promise<StartedSubscription> {
    const { status, body, text } = await this.order('subscribe', person);
    if (status !== 200) throw new Error(`subscribe: ${status} ${text}`);
    return body as StartedSubscription;
  }

  /** Creates an account with a card and a subscription. */
  async payer(card: Card = 'good'): Promise<Payer> {
    const person = await this.person();
    await this.addCard(person, card);
    return { ...person, subscriptionId: (await this.subscribe(person)).payment_subscription_id ?? '' };
  }

  /** Returns the paying account shared by all tests that do not modify it. */
  sharedPayer(): Promise<Payer> {
    this.#sharedPayer ??= this.payer();
    return this.#sharedPayer;
  }

  /** Creates an account that got the plan payg from the operator: the processor does not know the account, so no webhooks arrive. */
  async paygPerson(): Promise<Person> {
    const person = await this.person();
    await setPlan({ db: this.db, clock: systemClock }, OPERATOR, { email: person.email, plan: 'payg' });
    return person;
  }

  cap({ token }: Pick<Person, 'token'>, body: unknown): Promise<Answer> {
    return this.ask('PATCH', '/billing/spend-cap', { token, body });
  }

  async invoices({ token }: Pick<Person, 'token'>): Promise<readonly Invoice[]> {
    return ((await this.get('/billing/invoices', token)).body as { invoices: Invoice[] }).invoices;
  }

  /** Returns the newest invoice as soon as the account has `count` invoices and the newest has the given status. */
  invoiceWhen(person: Pick<Person, 'token'>, status: 'paid' | 'open', count = 1): Promise<Invoice> {
    return eventually(async () => {
      const found = await this.invoices(person);
      const [newest] = found;
      if (found.length !== count || newest?.status !== status) throw new Error(JSON.stringify(found));
      return newest;
    }, SOON);
  }

  /** Returns the edge that reports usage. All tests of a file share it. */
  edge(): Promise<UsageReportingEdge> {
    this.#edge ??= UsageReportingEdge.join(this.server).then((edge) => {
      this.use(edge.keepBeating());
      return edge;
    });
    return this.#edge;
  }

  /** Reports usage for a tunnel of the account, as an edge does. The usage is stored when the promise resolves. */
  async reportUsage(person: Person, bytes: number): Promise<void> {
    const edge = await this.edge();
    await edge.tell({ accountId: person.id, keyId: (await this.newKey(person)).id }, bytes);
  }

  /** Moves the simulator's clock past the end of the current month. */
  async endMonth(): Promise<void> {
    const now = new Date();
    const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
    await this.advance(Math.ceil((end - now.getTime()) / 1000) + 2 * 3600);
  }

  async advance(advance_secs: number): Promise<void> {
    const { status, body } = await this.sim('clock', { advance_secs });
    if (status !== 200) throw new Error(`clock: ${status} ${JSON.stringify(body)}`);
  }
}
