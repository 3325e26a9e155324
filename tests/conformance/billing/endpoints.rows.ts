// The six billing endpoints and their errors. The tests do not affect each other.
import { billingStatus, invoiceList, portalSession, setupIntent, startedSubscription } from '@tunnel/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from '../platform/api-request.fixture.ts';
import type { Person } from '../platform/platform-harness.fixture.ts';
import { type BillingHarness, CENT, type Payer } from './billing-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const BACK = { return_url: 'https://app.example.com/billing' };
const NO_TOKEN = [401, 'ACCESS_TOKEN_MISSING'];

export const endpointRows = (harness: BillingHarness): void => {
  let free: Person;
  let payer: Payer;
  beforeAll(async () => {
    [free, payer] = await Promise.all([harness.person(), harness.sharedPayer()]);
  });

  describe('Billing', () => {
    it(row('Billing', 1), async () => {
      const answer = await harness.get('/billing', payer.token);
      expect(answer.status).toBe(200);
      billingStatus.strict().parse(answer.body);
      expect(refusalOf(await harness.get('/billing'))).toEqual(NO_TOKEN);
      expect(refusalOf(await harness.get('/billing', 'nonsense'))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    });

    it(row('Billing', 2), async () => {
      const person = await harness.person();
      expect(refusalOf(await harness.order('subscribe', person))).toEqual([400, 'BILLING_NO_PAYMENT_METHOD']);
      await harness.addCard(person);
      const answer = await harness.order('subscribe', person);
      expect(answer.status).toBe(200);
      const payment_subscription_id = expect.stringMatching(/^sub_/);
      const started = startedSubscription.strict().parse(answer.body);
      expect(started).toEqual({ status: 'active', plan: 'payg', payment_subscription_id });
      expect(refusalOf(await harness.ask('POST', '/billing/subscribe'))).toEqual(NO_TOKEN);
    });

    it(row('Billing', 3), async () => {
      const answer = await harness.order('setup-intent', free);
      expect(answer.status).toBe(200);
      expect(setupIntent.strict().parse(answer.body).client_secret).toMatch(/^seti_\w+_secret_\w+$/);
      expect(refusalOf(await harness.ask('POST', '/billing/setup-intent'))).toEqual(NO_TOKEN);
    });

    it(row('Billing', 4), async () => {
      const answer = await harness.post('/billing/portal', BACK, payer.token);
      expect(answer.status).toBe(200);
      const page = await fetch(portalSession.strict().parse(answer.body).url);
      expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
      expect(await page.text()).toContain(BACK.return_url);
      expect(refusalOf(await harness.post('/billing/portal', BACK))).toEqual(NO_TOKEN);
    });

    it(row('Billing', 5), async () => {
      for (const { token } of [free, payer]) {
        const answer = await harness.get('/billing/invoices', token);
        expect([answer.status, invoiceList.strict().parse(answer.body)]).toEqual([200, { invoices: [] }]);
      }
      expect(refusalOf(await harness.get('/billing/invoices'))).toEqual(NO_TOKEN);
    });

    it(row('Billing', 6), async () => {
      const own = await harness.paygPerson();
      for (const spend_cap_cents of [0, 1, 2000, Number.MAX_SAFE_INTEGER, null]) {
        const answer = await harness.cap(own, { spend_cap_cents });
        expect([answer.status, answer.body]).toEqual([200, { spend_cap_cents }]);
        expect((await harness.billing(own)).spend_cap_cents).toBe(spend_cap_cents);
      }
      const unknown = await harness.ask('PATCH', '/billing/spend-cap', { body: { spend_cap_cents: 1 } });
      expect(refusalOf(unknown)).toEqual(NO_TOKEN);
      expect(refusalOf(await harness.cap(own, { spend_cap_cents: -1 }))).toEqual([400, 'API_BAD_REQUEST']);
    });
  });

  it(row('Limits', 1), async () => {
    const { body } = await harness.get('/openapi.json');
    const { components } = body as { components: { schemas: Record<string, { properties: Record<string, unknown> }> } };
    const form = { type: ['integer', 'null'], minimum: 0 };
    expect(components.schemas['SpendCap']?.properties['spend_cap_cents']).toMatchObject(form);
  });

  it(row('Contract', 1), async () => {
    const odd = [
      { raw: '{not json', headers: { 'content-type': 'application/json' } },
      { raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      { raw: new Uint8Array([0, 255]), headers: { 'content-type': 'nonsense' } },
      { body: { plan: 'free' } },
    ];
    for (const question of odd) {
      expect((await harness.order('setup-intent', payer, question)).status).toBe(200);
      const { status, body } = await harness.order('subscribe', payer, question);
      expect([status, body]).toEqual([200, expect.objectContaining({ payment_subscription_id: payer.subscriptionId })]);
    }
  });

  it(row('Contract', 4), async () => {
    const own = await harness.payer();
    const steps: [bytes: number, cents: number][] = [
      [299 * CENT, 300],
      [2 * CENT - 1, 300],
      [1, 301],
      [CENT - 1, 301],
      [1_000_000 * CENT, 1_000_301],
    ];
    for (const [bytes, cents] of steps) {
      await harness.reportUsage(own, bytes);
      expect((await harness.billing(own)).estimated_mtd_cents).toBe(cents);
    }
    await harness.reportUsage(free, 50 * CENT);
    expect((await harness.billing(free)).estimated_mtd_cents).toBe(0);
  });

  it(row('Contract', 5), async () => {
    for (const spend_cap_cents of [0, 500, null]) {
      const answer = await harness.cap(free, { spend_cap_cents });
      expect(refusalOf(answer)).toEqual([400, 'BILLING_CAP_NOT_PAYG']);
      expect(answer.error).toContain('`free`');
    }
    const own = await harness.paygPerson();
    expect((await harness.cap(own, { spend_cap_cents: 500 })).status).toBe(200);
  });

  it(row('Contract', 6), async () => {
    const own = await harness.paygPerson();
    await harness.cap(own, { spend_cap_cents: 700 });
    for (const wrong of [1.5, -1, '5', 2 ** 53, [], {}, true, undefined]) {
      const answer = await harness.cap(own, { spend_cap_cents: wrong });
      expect([wrong, ...refusalOf(answer)]).toEqual([wrong, 400, 'API_BAD_REQUEST']);
      expect(answer.error).toMatch(/^spend_cap_cents: /);
    }
    for (const body of [{ spend_cap: 5 }, [], null, 'none', 5]) {
      expect(refusalOf(await harness.cap(own, body))).toEqual([400, 'API_BAD_REQUEST']);
    }
    expect((await harness.billing(own)).spend_cap_cents).toBe(700);
    await harness.cap(own, { spend_cap_cents: null });
    expect((await harness.billing(own)).spend_cap_cents).toBeNull();
  });

  it(row('Contract', 14), async () => {
    expect(refusalOf(await harness.order('subscribe', await harness.person()))[0]).toBe(400);
    const again = await harness.subscribe(payer);
    expect(again).toEqual({ status: 'active', plan: 'payg', payment_subscription_id: payer.subscriptionId });
  });

  it(row('Contract', 14, 'eight at once'), async () => {
    const own = await harness.person();
    await harness.addCard(own);
    const answers = await Promise.all(Array.from({ length: 8 }, () => harness.subscribe(own)));
    expect(new Set(answers.map(({ payment_subscription_id: id }) => id)).size).toBe(1);
  });

  it(row('Contract', 15), async () => {
    const portal = (return_url: unknown) => harness.post('/billing/portal', { return_url }, payer.token);
    const wrong = [
      '',
      'example.com',
      '/app',
      'ftp://example.com',
      'javascript:alert(1)',
      'https://',
      7,
      null,
      undefined,
    ];
    for (const return_url of wrong) {
      const answer = await portal(return_url);
      expect([return_url, ...refusalOf(answer)]).toEqual([return_url, 400, 'API_BAD_REQUEST']);
      expect(answer.error).toMatch(/^return_url: /);
    }
    for (const good of ['http://localhost:8080/app/', 'HTTPS://example.com']) {
      expect((await portal(good)).status).toBe(200);
    }
  });

  it(row('Contract', 21), async () => {
    const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });
    const portal = (return_url: string, key: string): Promise<Answer> =>
      harness.ask('POST', '/billing/portal', { token: payer.token, body: { return_url }, ...keyed(key) });
    const intents = await Promise.all([1, 2, 3].map(() => harness.order('setup-intent', payer, keyed('once'))));
    expect(new Set(intents.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect((await harness.order('setup-intent', payer, keyed('twice'))).text).not.toBe(intents[0]?.text);
    const first = await portal('https://a.example', 'p');
    const same = await portal('https://a.example', 'p');
    expect([first.status, same.text]).toEqual([200, first.text]);
    const reused = [
      await harness.order('subscribe', payer, keyed('once')),
      await portal('https://a.example', 'once'),
      await portal('https://b.example', 'p'),
    ];
    expect(reused.map(refusalOf)).toEqual(reused.map(() => [409, 'IDEMPOTENCY_KEY_REUSED']));
    // A different account can use the same idempotency key.
    expect((await harness.order('setup-intent', free, keyed('once'))).status).toBe(200);
    for (const key of ['', 'a'.repeat(256), 'ü', 'a\tb']) {
      expect(refusalOf(await harness.order('subscribe', payer, keyed(key)))).toEqual([400, 'IDEMPOTENCY_KEY_INVALID']);
    }
  });
};
