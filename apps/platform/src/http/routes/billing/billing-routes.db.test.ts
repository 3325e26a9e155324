import { billingStatus, portalSession, setupIntent, startedSubscription } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentsFixture, type Reply } from './payments.fixture.ts';

let fixture: PaymentsFixture;
beforeAll(async () => {
  fixture = await PaymentsFixture.open();
});
afterAll(() => fixture.close());

const told = ({ status, body }: Reply): [number, string, string] => [status, body.code, body.error];
const statusOf = async (user: string) => billingStatus.parse((await fixture.ask(user, 'GET', '/billing')).body);
const subscriptionsOf = async (user: string) => {
  const { payment_customer_id } = await statusOf(user);
  return fixture.atProcessor(`/subscriptions?customer=${payment_customer_id}&status=all`);
};

describe('billing endpoints', () => {
  it.each([
    ['GET', '/billing'],
    ['GET', '/billing/invoices'],
    ['POST', '/billing/subscribe'],
    ['POST', '/billing/setup-intent'],
    ['POST', '/billing/portal'],
    ['PATCH', '/billing/spend-cap'],
  ])('return 401: %s %s without an access token', async (method, path) => {
    expect((await fixture.ask(null, method, path)).status).toBe(401);
  });

  it.each([
    ['POST', '/billing', 'GET, HEAD'],
    ['GET', '/billing/subscribe', 'POST'],
    ['PUT', '/billing/spend-cap', 'PATCH'],
    ['GET', '/billing/webhook', 'POST'],
  ])('return 405 for a wrong method: %s %s', async (method, path, allow) => {
    const { status, headers } = await fixture.ask('nobody', method, path);
    expect([status, headers.get('allow')]).toEqual([405, allow]);
  });

  it('return 404 for an unknown path', async () => {
    expect((await fixture.ask('nobody', 'GET', '/billing/webhook/x')).status).toBe(404);
  });
});

describe('subscribing', () => {
  it('takes a setup intent, a card and a subscribe call, with responses as specified', async () => {
    const user = await fixture.addUser('ada');
    expect(await statusOf(user)).toMatchObject({ billing_model: 'free', payment_customer_id: null });
    expect(told(await fixture.post(user, '/billing/subscribe')).slice(0, 2)).toEqual([
      400,
      'BILLING_NO_PAYMENT_METHOD',
    ]);
    const intent = await fixture.post(user, '/billing/setup-intent');
    expect(intent.status).toBe(200);
    const { client_secret } = setupIntent.parse(intent.body);
    expect(told(await fixture.post(user, '/billing/subscribe')).slice(0, 2)).toEqual([
      400,
      'BILLING_NO_PAYMENT_METHOD',
    ]);
    await fixture.control(`/setup_intents/${client_secret}/confirm`);
    await eventually(async () => expect((await statusOf(user)).has_payment_method).toBe(true));
    const first = await fixture.post(user, '/billing/subscribe');
    expect([first.status, startedSubscription.parse(first.body)]).toMatchObject([
      200,
      { status: 'active', plan: 'payg' },
    ]);
    expect(await fixture.post(user, '/billing/subscribe')).toMatchObject({ status: 200, body: first.body });
    const status = await statusOf(user);
    expect(status).toMatchObject({
      billing_model: 'payg',
      plan_name: 'payg',
      estimated_mtd_cents: 300,
      subscription_status: 'active',
      monthly_minimum_cents: 300,
    });
    expect(Date.parse(status.current_period_end ?? '')).toBeGreaterThan(Date.now());
    expect(await subscriptionsOf(user)).toMatchObject([{ id: first.body.payment_subscription_id }]);
  });

  it('works before the webhook arrives, because the platform looks up the card at the processor', async () => {
    await fixture.control('/webhooks', { mode: 'late' });
    const user = await fixture.addUser('quick');
    await fixture.addCard(user);
    expect((await fixture.post(user, '/billing/subscribe')).status).toBe(200);
    await fixture.control('/webhooks', { mode: 'normal' });
  });

  it('fails with 400 after a declined card', async () => {
    const user = await fixture.addUser('declined');
    expect((await fixture.addCard(user, 'declined')).status).toBe(402);
    expect((await fixture.post(user, '/billing/subscribe')).status).toBe(400);
  });

  it.each([
    ['text', { raw: 'anything', headers: { 'content-type': 'text/plain' } }],
    ['no type', { raw: new Uint8Array([0, 1, 255]) }],
    ['broken JSON', { raw: '{"a":', headers: { 'content-type': 'application/json' } }],
    ['a list', { json: [1, 2] }],
  ])('ignores body and content type of POST requests without a body: %s', async (name, options) => {
    const user = await fixture.addUser(`body of ${name}`.replaceAll(' ', '-'));
    expect((await fixture.post(user, '/billing/setup-intent', options)).status).toBe(200);
    expect(told(await fixture.post(user, '/billing/subscribe', options))[1]).toBe('BILLING_NO_PAYMENT_METHOD');
  });

  it.each([
    ['with one Idempotency-Key', () => ({ 'idempotency-key': 'the same' })],
    ['with a key each', (turn: number) => ({ 'idempotency-key': `key ${turn}` })],
    ['without a key', () => ({})],
  ])('creates one subscription for twenty concurrent requests, %s', async (name, headersOf) => {
    const user = await fixture.addUser(`race-${name.replaceAll(' ', '-')}`);
    await fixture.addCard(user);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, turn) => fixture.post(user, '/billing/subscribe', { headers: headersOf(turn) })),
    );
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: answers[0]?.body });
    expect(await subscriptionsOf(user)).toHaveLength(1);
  });
});

describe('a setup intent', () => {
  it('is the same for a repeated Idempotency-Key, and new for every request without a key', async () => {
    const user = await fixture.addUser('intents');
    const secret = async (headers?: Record<string, string>): Promise<string> =>
      (await fixture.post(user, '/billing/setup-intent', headers === undefined ? {} : { headers })).body.client_secret;
    const key = { 'idempotency-key': 'once' };
    expect(new Set([await secret(key), await secret(key), await secret(), await secret()]).size).toBe(3);
  });
});

describe('POST /billing/portal', () => {
  it('returns 200 with a link, even for an account without a customer at the processor', async () => {
    const user = await fixture.addUser('portal');
    const { status, body } = await fixture.post(user, '/billing/portal', {
      json: { return_url: 'http://localhost/app' },
    });
    expect(status).toBe(200);
    const page = await fetch(portalSession.parse(body).url);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('http://localhost/app')]);
  });

  it.each([
    [{}, 'return_url: is missing'],
    [{ return_url: null }, 'return_url: must be a string, not null'],
    [{ return_url: 'javascript:alert(1)' }, 'return_url: must be an http or https URL'],
    [{ return_url: '/app' }, 'return_url: must be an http or https URL'],
    [[], 'body: must be an object, not array'],
  ])('returns 400 for %j', async (json, error) => {
    const user = await fixture.addUser(`portal-${JSON.stringify(json)}`);
    expect(told(await fixture.post(user, '/billing/portal', { json }))).toEqual([400, 'API_BAD_REQUEST', error]);
  });

  it('returns 415 for a body other than JSON', async () => {
    const raw = 'return_url=http://localhost';
    expect((await fixture.post('nobody', '/billing/portal', { raw })).status).toBe(415);
  });

  it("repeats its response for a reused key, and returns 409 if the key's request differs", async () => {
    const user = await fixture.addUser('portal-key');
    const headers = { 'idempotency-key': 'p' };
    const order = (return_url: string) => fixture.post(user, '/billing/portal', { json: { return_url }, headers });
    const first = await order('http://localhost/a');
    expect((await order('http://localhost/a')).body).toEqual(first.body);
    expect(told(await order('http://localhost/b')).slice(0, 2)).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    const elsewhere = await fixture.post(user, '/billing/setup-intent', { headers });
    expect(told(elsewhere).slice(0, 2)).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('returns 400 for an Idempotency-Key of 256 characters', async () => {
    const headers = { 'idempotency-key': 'x'.repeat(256) };
    expect(told(await fixture.post('nobody', '/billing/setup-intent', { headers }))[1]).toBe('IDEMPOTENCY_KEY_INVALID');
  });
});

describe('PATCH /billing/spend-cap', () => {
  const patch = (user: string, json: unknown) => fixture.ask(user, 'PATCH', '/billing/spend-cap', { json });

  it('sets the cap, and only an explicit null removes it', async () => {
    const user = await fixture.addUser('capped', 'payg');
    for (const spend_cap_cents of [500, 0, Number.MAX_SAFE_INTEGER, null]) {
      expect(await patch(user, { spend_cap_cents })).toMatchObject({ status: 200, body: { spend_cap_cents } });
      expect((await statusOf(user)).spend_cap_cents).toBe(spend_cap_cents);
    }
  });

  it.each([[{}], [{ spend_cap_cents: -1 }], [{ spend_cap_cents: 0.5 }], [{ spend_cap_cents: '5' }], [{ cap: 5 }]])(
    'returns 400 for %j, names the field, and changes nothing',
    async (json) => {
      const user = await fixture.addUser(`cap-${JSON.stringify(json)}`, 'payg');
      await patch(user, { spend_cap_cents: 700 });
      const [status, code, error] = told(await patch(user, json));
      expect([status, code]).toEqual([400, 'API_BAD_REQUEST']);
      expect(error).toMatch(/^spend_cap_cents: /);
      expect((await statusOf(user)).spend_cap_cents).toBe(700);
    },
  );

  it('returns 400 for numbers beyond the safe integer range', async () => {
    const user = await fixture.addUser('cap-huge', 'payg');
    for (const number of ['9007199254740992', '1e300', '1e999']) {
      const raw = `{"spend_cap_cents":${number}}`;
      const headers = { 'content-type': 'application/json' };
      const answer = await fixture.ask(user, 'PATCH', '/billing/spend-cap', { raw, headers });
      expect(told(answer)).toEqual([400, 'API_BAD_REQUEST', expect.stringMatching(/^spend_cap_cents: /)]);
    }
  });

  it('returns 400 on a plan without a price', async () => {
    const user = await fixture.addUser('cap-free');
    for (const spend_cap_cents of [5, null]) {
      expect(told(await patch(user, { spend_cap_cents })).slice(0, 2)).toEqual([400, 'BILLING_CAP_NOT_PAYG']);
    }
  });
});
