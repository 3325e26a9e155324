import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { createLogger, Secret } from '@tunnel/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProcessorClient } from './processor-client.ts';

const KEY = 'sk_test_51VerySecretKeyOfThisTest';

let server: Server;
let answer: (response: ServerResponse) => void;
let asked: { authorization: string | undefined; telemetry: unknown; version: unknown }[];
let lines: string;
let client: ProcessorClient;

beforeEach(async () => {
  asked = [];
  lines = '';
  server = createServer((request, response) => {
    const { authorization, 'x-stripe-client-telemetry': telemetry, 'stripe-version': version } = request.headers;
    asked.push({ authorization, telemetry, version });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => {
    lines += chunk.toString('utf8');
  });
  client = new ProcessorClient({
    secretKey: new Secret(KEY),
    apiUrl: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logger: createLogger({ format: 'json', stream }),
    timeoutMs: 2500,
  });
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

const json = (status: number, body: object) => (response: ServerResponse) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
const refusing = (status: number, error: object) => json(status, { error });
const look = () => client.call('read customer', (stripe) => stripe.customers.retrieve('cus_1'));

const AWAY = { code: 'BILLING_PROCESSOR_AWAY', status: 503, retryable: true, values: { seconds: 5 } };

describe('the processor client', () => {
  it('sends the key and the API version, but no telemetry', async () => {
    answer = json(200, { id: 'cus_1', object: 'customer' });
    await look();
    await look();
    expect(asked).toHaveLength(2);
    expect(asked[1]).toEqual({ authorization: `Bearer ${KEY}`, telemetry: undefined, version: expect.any(String) });
  });

  it.each([
    ['an error of its own', refusing(500, { type: 'api_error', message: 'oops' })],
    ['too many calls', refusing(429, { type: 'rate_limit_error', message: 'slow down' })],
    ['the same call still under way', refusing(409, { type: 'idempotency_error', message: 'in use' })],
    ['what is no JSON', (response: ServerResponse) => void response.writeHead(200).end('<html>')],
    ['an object of nobody', json(200, {})],
    ['a list of nothing', json(200, [])],
    ['an error of somebody on the way', json(503, { message: 'Service Unavailable' })],
    ['nothing', () => {}],
    ['a broken connection', (response: ServerResponse) => void response.destroy()],
  ])('treats %s as an unavailable processor', async (_what, given) => {
    answer = given;
    const began = performance.now();
    await expect(look()).rejects.toMatchObject(AWAY);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('passes on a rejection and logs its code', async () => {
    answer = refusing(400, { type: 'invalid_request_error', message: 'No such thing: x', code: 'resource_missing' });
    await expect(look()).rejects.toMatchObject({
      code: 'BILLING_PROCESSOR_REFUSED',
      status: 502,
      message: 'the payment processor rejected the request: No such thing: x',
    });
    expect(lines).toContain('resource_missing');
  });

  it('hides problems with our API key from customers', async () => {
    answer = refusing(401, { type: 'invalid_request_error', message: `Invalid API Key provided: ${KEY}` });
    const fault = await look().catch((error: Error) => error);
    expect(fault).toMatchObject({ code: 'BILLING_PROCESSOR_REFUSED' });
    expect((fault as Error).message).not.toContain('API Key');
  });

  it('logs the outage once, the recovery once, and never a secret', async () => {
    answer = refusing(500, { type: 'api_error', message: 'oops' });
    await Promise.all([look(), look()].map((call) => call.catch(() => {})));
    answer = json(200, { id: 'cus_1', object: 'customer' });
    await look();
    await look();
    answer = refusing(402, {
      type: 'card_error',
      message: 'Your card was declined.',
      setup_intent: { id: 'seti_1', client_secret: 'seti_1_secret_abc' },
    });
    await look().catch(() => {});
    const messages = lines
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toEqual([
      'cannot reach the payment processor',
      'the payment processor is available again',
      'the payment processor rejected a request',
    ]);
    expect(lines).not.toContain(KEY);
    expect(lines).not.toContain('secret_abc');
  });

  it('passes on internal errors unchanged', async () => {
    const own = new TypeError('a bug');
    await expect(client.call('x', () => Promise.reject(own))).rejects.toBe(own);
  });
});
