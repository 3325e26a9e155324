// Runs against the official processor mock, which knows every call and parameter of the API and stores nothing.
// tests/tools/billing/stripe-mock.sh downloads the mock and runs this file. A proxy in between changes the mock's responses where the
// next step needs it.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger, Secret } from '@tunnel/runtime';
import { apiRoutes, findRoute } from '@tunnel/simulator/fixture';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProcessor } from './create-processor.ts';
import type { Processor } from './processor.ts';

const ROUTES = apiRoutes(() => '');
const mockUrl = process.env['STRIPE_MOCK_URL'] ?? '';

type Body = Record<string, unknown>;

const empty = (body: Body): Body => ({ ...body, data: [] });

/**
 * Changes to the mock's responses: lists become empty, so that every object is created; a subscription is set to end, so that it can be
 * kept.
 */
const ALTERED: readonly (readonly [method: string, path: RegExp, alter: (body: Body) => Body])[] = [
  ['GET', /^\/v1\/(customers|prices|billing\/meters|invoiceitems)$/, empty],
  ['GET', /^\/v1\/subscriptions\/sub_period_end$/, (body) => ({ ...body, cancel_at_period_end: true })],
  ['GET', /^\/v1\/subscriptions\/sub_at$/, (body) => ({ ...body, cancel_at_period_end: false, cancel_at: 1 })],
];

const itemOf = (body: Body, key: string): Body => ({
  ...body,
  data: [{ ...(body['data'] as Body[])[0], invoice: null, metadata: { kind: 'final-minimum', key } }],
});

describe.skipIf(mockUrl === '')('the official processor mock', () => {
  const seen = new Set<string>();
  let alterItems: (body: Body) => Body = (body) => body;
  let alterSubscriptions = empty;
  let between: Server;
  let processor: Processor;

  beforeAll(async () => {
    between = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const path = url.split('?')[0] ?? '';
        const init = { method, headers: headers as Record<string, string>, body: Buffer.concat(chunks) };
        const { host: _host, connection: _connection, 'content-length': _length, ...own } = init.headers;
        void fetch(`${mockUrl}${url}`, { method, headers: own, ...(method === 'POST' ? { body: init.body } : {}) })
          .then(async (answer) => {
            let body = (await answer.json()) as Body;
            if (answer.ok) seen.add(`${method} ${findRoute(ROUTES, method, path)?.route.path ?? path}`);
            for (const [own_, pattern, alter] of ALTERED) if (own_ === method && pattern.test(path)) body = alter(body);
            if (method === 'GET' && path === '/v1/invoiceitems') body = alterItems(body);
            if (method === 'GET' && path === '/v1/subscriptions') body = alterSubscriptions(body);
            // Marks created objects as replayed, so that the client also searches for them.
            const replayed = { 'idempotent-replayed': String(method === 'POST') };
            const type = { 'content-type': 'application/json' };
            response.writeHead(answer.status, { ...type, ...replayed }).end(JSON.stringify(body));
          })
          .catch((error: unknown) => response.destroy(error as Error));
      });
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    processor = createProcessor({
      secretKey: new Secret('sk_test_123'),
      webhookSecret: () => new Secret('whsec_mock'),
      apiUrl: () => `http://127.0.0.1:${(between.address() as AddressInfo).port}`,
      // An unusual price on purpose, because it needs more parameters.
      prices: { minimumCents: 300, priceCentsPerGb: 7 },
      logger: createLogger({ format: 'json', level: 'silent' }),
    });
  });
  afterAll(() => {
    between.closeAllConnections();
    between.close();
  });

  it('accepts every call of the platform with its parameters', async () => {
    const customerId = 'cus_123';
    await processor.ensureCustomer({ userId: 'u', email: 'ann@example.com', name: 'Ann' });
    await processor.createSetupIntent(customerId, 'key');
    expect(await processor.readCustomer(customerId)).not.toBeNull();
    await processor.usePaymentMethod(customerId, 'pm_123');
    await processor.subscribe({ customerId, userId: 'u', idempotencyKey: 'subscribe:u:1' });
    await processor.keepSubscription('sub_period_end');
    await processor.keepSubscription('sub_at');
    await processor.reportUsage({ identifier: 'u-2026-11-1', customerId, bytes: 5_000_000_000, at: Date.now() });
    await processor.meteredBytes({ customerId, from: Date.now() - 3_600_000, to: Date.now() });
    await processor.openPortal({ customerId, returnUrl: 'https://platform.example/app/' });
    expect(await processor.invoices(customerId)).not.toEqual([]);
    const order = { customerId, subscriptionId: 'sub_123', periodEnd: 1_000_000, wanted: true, hasEnded: false };
    await processor.setFinalMinimum(order);
    await processor.setFinalMinimum({ ...order, hasEnded: true });
    alterItems = (body) => itemOf({ ...body, data: [{ id: 'ii_1' }] }, 'final-minimum:sub_123:1000');
    await processor.setFinalMinimum({ ...order, wanted: false });
    alterSubscriptions = (body) => body;
    await processor.endSubscriptions(customerId);
  });

  it("accepts the dashboard form's and the test clock's calls, which bypass the processor client", async () => {
    const api = `http://127.0.0.1:${(between.address() as AddressInfo).port}/v1`;
    const headers = { authorization: 'Bearer sk_test_123' };
    const answers = [
      await fetch(`${api}/setup_intents/seti_123`, { headers }),
      await fetch(`${api}/test_helpers/test_clocks/clock_123`, { headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('rejects unknown parameters', async () => {
    const headers = { authorization: 'Bearer sk_test_123' };
    const body = new URLSearchParams({ colour: 'red' });
    const answer = await fetch(`${mockUrl}/v1/customers`, { method: 'POST', headers, body });
    expect(answer.status).toBe(400);
  });

  it('has received every call that the simulator supports', () => {
    const ours = ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect([...seen].sort()).toEqual([...new Set(ours)].sort());
  });
});
