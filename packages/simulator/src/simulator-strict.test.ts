// The simulator rejects calls that Stripe would reject, and clients without access.
import { request } from 'node:http';
import { systemClock } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SILENT, SimulatorHarness } from './simulator.fixture.ts';
import { Simulator } from './simulator.ts';

let harness: SimulatorHarness;

beforeAll(async () => {
  harness = await SimulatorHarness.open();
});
afterAll(() => harness.close());

const refusal = async (response: Response): Promise<{ status: number; error: Record<string, string> }> => ({
  status: response.status,
  ...((await response.json()) as { error: Record<string, string> }),
});

describe('the strict Stripe API of the simulator', () => {
  const customer = { email: 'a@example.com' };

  it.each([
    ['an unknown path', 'POST', '/v1/charges', {}, 404, { type: 'invalid_request_error' }],
    ['another method', 'DELETE', '/v1/customers/cus_x', {}, 404, { type: 'invalid_request_error' }],
    [
      'an unknown parameter',
      'POST',
      '/v1/customers',
      { ...customer, colour: 'red' },
      400,
      { code: 'parameter_unknown', param: 'colour' },
    ],
    [
      'one inside another',
      'POST',
      '/v1/customers/cus_x',
      { 'invoice_settings[footer]': 'x' },
      400,
      { code: 'parameter_unknown', param: 'invoice_settings[footer]' },
    ],
    [
      'a parameter of a list',
      'GET',
      '/v1/customers?colour=red',
      {},
      400,
      { code: 'parameter_unknown', param: 'colour' },
    ],
    ['a missing parameter', 'POST', '/v1/customers', {}, 400, { code: 'parameter_missing', param: 'email' }],
    [
      'a missing one inside',
      'POST',
      '/v1/billing/meters',
      { display_name: 'm', event_name: 'e', 'default_aggregation[x]': '1' },
      400,
      { code: 'parameter_unknown', param: 'default_aggregation[x]' },
    ],
    ['no integer', 'GET', '/v1/customers?limit=many', {}, 400, { param: 'limit' }],
    ['too large a page', 'GET', '/v1/customers?limit=101', {}, 400, { param: 'limit' }],
    ['an unknown object', 'GET', '/v1/customers/cus_x', {}, 404, { code: 'resource_missing', param: 'id' }],
    ['an unknown page', 'GET', '/v1/customers?starting_after=cus_x', {}, 404, { code: 'resource_missing' }],
    ['a broken name', 'POST', '/v1/customers', { 'a[': '1' }, 400, { type: 'invalid_request_error' }],
  ])('refuses %s', async (_what, method, path, form, status, error) => {
    expect(await refusal(await harness.call(method, path, form))).toMatchObject({ status, error });
  });

  it('responds with 401 without the secret key, or with another key', async () => {
    const url = `${harness.simulator.url}/v1/customers`;
    for (const authorization of [undefined, 'Bearer sk_test_other', 'Basic abc']) {
      const response = await fetch(url, authorization === undefined ? {} : { headers: { authorization } });
      expect(await refusal(response)).toMatchObject({ status: 401, error: { type: 'invalid_request_error' } });
    }
  });

  it('responds with 413 to a call that is too large', async () => {
    const response = await harness.call('POST', '/v1/customers', { email: 'x'.repeat(70_000) });
    expect(response.status).toBe(413);
  });

  it('refuses the idempotency key of a different call, unless that call was refused', async () => {
    await harness.call('POST', '/v1/customers', {}, 'k');
    const first = await harness.call('POST', '/v1/customers', customer, 'k');
    expect(first.status).toBe(200);
    const other = await harness.call('POST', '/v1/customers', { email: 'b@example.com' }, 'k');
    expect(await refusal(other)).toMatchObject({ status: 400, error: { type: 'idempotency_error' } });
    const again = await harness.call('POST', '/v1/customers', customer, 'k');
    expect(await again.json()).toEqual(await first.json());
  });

  it('runs a call again when the idempotency key is older than a day', async () => {
    const clock = new FakeClock(Date.now());
    const own = await SimulatorHarness.open(clock);
    const idOf = async (): Promise<unknown> =>
      ((await (await own.call('POST', '/v1/customers', customer, 'k')).json()) as { id: string }).id;
    const first = await idOf();
    await clock.advance(23 * 3_600_000);
    expect(await idOf()).toBe(first);
    await clock.advance(2 * 3_600_000);
    expect(await idOf()).not.toBe(first);
    const form = { event_name: 'e', display_name: 'E', 'default_aggregation[formula]': 'sum' };
    const mapping = { 'customer_mapping[type]': 'by_id', 'customer_mapping[event_payload_key]': 'stripe_customer_id' };
    await own.call('POST', '/v1/billing/meters', { ...form, ...mapping, 'value_settings[event_payload_key]': 'value' });
    const event = {
      event_name: 'e',
      identifier: 'one',
      'payload[stripe_customer_id]': String(first),
      'payload[value]': '1',
    };
    const report = async (): Promise<number> => {
      const timestamp = String(Math.floor(clock.now() / 1000));
      return (await own.call('POST', '/v1/billing/meter_events', { ...event, timestamp })).status;
    };
    expect([await report(), await report()]).toEqual([200, 400]);
    await clock.advance(25 * 3_600_000);
    expect([await report(), await report()]).toEqual([200, 400]);
    await own.close();
  });

  it('leaves the state unchanged after a refused call', async () => {
    const form = {
      customer: await harness.customerWithCard(),
      'items[0][price]': 'price_x',
      proration_behavior: 'none',
      off_session: 'true',
    };
    const anchor = { day_of_month: '1', hour: '0', minute: '0', second: '0' };
    const config = Object.fromEntries(
      Object.entries(anchor).map(([key, value]) => [`billing_cycle_anchor_config[${key}]`, value]),
    );
    const refused = await refusal(await harness.call('POST', '/v1/subscriptions', { ...form, ...config }));
    expect(refused).toMatchObject({ status: 404, error: { param: 'items[0][price]' } });
    const { data } = (await (await harness.call('GET', '/v1/subscriptions')).json()) as { data: unknown[] };
    expect(data).toEqual([]);
  });

  it('pages a list without gaps or repetitions', async () => {
    for (let count = 0; count < 5; count += 1)
      await harness.call('POST', '/v1/customers', { email: `page${count}@x.y` });
    const seen: string[] = [];
    let after = '';
    for (let more = true; more; ) {
      const page = (await (await harness.call('GET', `/v1/customers?limit=2${after}`)).json()) as {
        has_more: boolean;
        data: { id: string; email: string }[];
      };
      seen.push(...page.data.map(({ email }) => email));
      after = `&starting_after=${page.data.at(-1)?.id}`;
      more = page.has_more;
    }
    expect(seen.slice(0, 5)).toEqual(['page4@x.y', 'page3@x.y', 'page2@x.y', 'page1@x.y', 'page0@x.y']);
    expect(new Set(seen).size).toBe(seen.length);
  });
});

/** Sends a request with node:http, because fetch would overwrite the Host header. */
const ask = (path: string, headers: Record<string, string>, method = 'GET'): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = request(`${harness.simulator.url}${path}`, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asked.on('error', reject).end();
  });

describe('access to the simulator', () => {
  it('is allowed only under a host name of this computer', async () => {
    const { host, port } = new URL(harness.simulator.url);
    for (const name of [host, `localhost:${port}`, `LOCALHOST.:${port}`, `[::1]:${port}`])
      expect(await ask('/', { host: name })).toBe(200);
    for (const name of ['evil.example', `evil.example:${port}`, `127.0.0.1.evil.example:${port}`, '10.0.0.1']) {
      expect(await ask('/', { host: name })).toBe(421);
      expect(await ask('/_sim/clock', { host: name }, 'POST')).toBe(421);
      expect(await ask('/v1/customers', { host: name })).toBe(421);
    }
  });

  it('is refused to pages of other origins', async () => {
    const { origin } = new URL(harness.simulator.url);
    expect(await ask('/_sim', { origin })).toBe(200);
    for (const other of ['http://evil.example', 'null', 'http://localhost:8080', `${origin}0`]) {
      expect(await ask('/_sim/webhooks', { origin: other }, 'POST')).toBe(403);
      expect(await ask('/', { origin: other })).toBe(403);
    }
  });

  it('is never opened to other computers', () => {
    const at = { folder: harness.folder, port: 0, portKey: 'port' };
    const options = { ...at, clock: systemClock, logger: SILENT, webhookUrl: () => null };
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'example.com']) {
      expect(() => new Simulator({ ...options, host })).toThrow(/this machine only/);
    }
  });

  it('fails to start on a port in use with the name of the config key', async () => {
    const port = Number(new URL(harness.simulator.url).port);
    const folder = `${harness.folder}-other`;
    const other = new Simulator({
      folder,
      host: '127.0.0.1',
      port,
      portKey: 'the.port',
      clock: systemClock,
      logger: SILENT,
      webhookUrl: () => null,
    });
    await expect(other.start()).rejects.toMatchObject({
      code: 'CONFIG_PORT_TAKEN',
      message: expect.stringContaining('(the.port)'),
    });
  });
});

describe('a control call', () => {
  it.each([
    ['/setup_intents/seti_x/confirm', {}, 404],
    ['/clock', { advance_secs: -1 }, 400],
    ['/clock', { advance_secs: 1.5 }, 400],
    ['/clock', { advance_secs: 'soon' }, 400],
    ['/clock', { advance_secs: 1e12 }, 400],
    ['/clock', { advance_secs: null }, 400],
    ['/clock', { advance_secs: true }, 400],
    ['/clock', {}, 400],
    ['/clock', { advance_secs: 1, more: 1 }, 400],
    ['/subscriptions/sub_x/cancel', {}, 404],
    ['/invoices/in_x/pay', {}, 404],
    ['/nothing', {}, 404],
  ])('%s %j: %i', async (path, body, status) => {
    expect((await harness.control(path, body)).status).toBe(status);
  });

  it('is not needed to read a setup intent, which has no payment methods', async () => {
    const customer = await harness.createCustomer('c@example.com');
    const { id } = await harness.stripe.setupIntents.create({ customer, usage: 'off_session' });
    expect(await harness.stripe.setupIntents.retrieve(id)).toMatchObject({
      id,
      customer,
      status: 'requires_payment_method',
    });
    await harness.control(`/setup_intents/${id}/confirm`, { card: 'good' });
    expect(await harness.stripe.setupIntents.retrieve(id)).toMatchObject({ id, status: 'succeeded' });
    await expect(harness.stripe.setupIntents.retrieve('seti_unknown')).rejects.toMatchObject({ statusCode: 404 });
    const enabled = { customer, usage: 'off_session', automatic_payment_methods: { enabled: true } } as const;
    expect(await harness.stripe.setupIntents.create(enabled)).toMatchObject({ customer });
  });

  it('confirms once, by the id or the whole client secret, and by no other secret', async () => {
    const customerId = await harness.createCustomer('c@example.com');
    const first = await harness.createSetupIntent(customerId);
    const second = await harness.createSetupIntent(customerId);
    expect((await harness.control(`/setup_intents/${first}x/confirm`)).status).toBe(404);
    expect((await harness.control(`/setup_intents/${first}/confirm`)).body).toMatchObject({ status: 'succeeded' });
    expect((await harness.control(`/setup_intents/${first}/confirm`)).status).toBe(400);
    const id = second.split('_secret_')[0]!;
    const declined = await harness.control(`/setup_intents/${id}/confirm`, { card: 'declined' });
    expect(declined).toMatchObject({ status: 402, body: { error: { type: 'card_error', code: 'card_declined' } } });
    expect((await harness.control(`/setup_intents/${id}/confirm`, { card: 'good' })).status).toBe(200);
  });
});
