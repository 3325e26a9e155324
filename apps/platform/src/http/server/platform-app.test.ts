import { createRoute, z } from '@hono/zod-openapi';
import { type ApiError, EDGE_LINK_PATH } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { integerParameter } from '@tunnel/http-shell';
import { createLogger, Secret } from '@tunnel/runtime';
import { describe, expect, it, vi } from 'vitest';
import { DatabaseAway } from '../../db/database-away.ts';
import { createPlatformApp, type PlatformAppOptions } from './platform-app.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080', host: '127.0.0.1' };

const answers = { 200: { description: 'What came.' } };
const echoRoute = createRoute({
  method: 'post',
  path: '/echo/{id}',
  request: {
    params: z.object({ id: z.string() }),
    body: {
      required: true,
      content: { 'application/json': { schema: z.object({ label: z.string(), deep: z.unknown().optional() }) } },
    },
  },
  responses: answers,
});
const listRoute = createRoute({
  method: 'get',
  path: '/list',
  request: {
    query: z.object({
      limit: integerParameter('limit', { default: 20, min: 1, max: 100 }, 'How many.'),
      offset: integerParameter('offset', { default: 0, min: 0 }, 'After how many.'),
    }),
  },
  responses: answers,
});

const makeApp = (deps: Partial<PlatformAppOptions> = {}) => {
  const app = createPlatformApp({ logger, settings, ...deps });
  app.use('/locked', () => Promise.reject(new Fault('AUTH_TOKEN_MISSING')));
  app.get('/locked', (context) => context.text('in'));
  app.get('/address', (context) => context.text(context.get('address')));
  app.get('/broken', () => Promise.reject(new Error('secret of the inside')));
  app.get('/away', () => Promise.reject(new DatabaseAway(new Error('connect ECONNREFUSED'))));
  app.get('/health', (context) => context.text('ok'));
  app.post(`${EDGE_LINK_PATH}/records`, async (context) => context.json((await context.req.text()).length));
  app.openapi(echoRoute, (context) => context.json({ label: context.req.valid('json').label }));
  app.openapi(listRoute, (context) => context.json(context.req.valid('query')));
  return app;
};
const app = makeApp();

const post = (body: string | ReadableStream | Uint8Array, headers: Record<string, string> = {}, path = '/echo/1') =>
  app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    duplex: 'half',
  } as RequestInit);

const refusal = async (response: Response): Promise<[number, string, string]> => {
  const body = (await response.json()) as ApiError;
  expect(Object.keys(body).sort()).toEqual(['code', 'error', 'request_id']);
  expect(body.request_id).toBe(response.headers.get('x-request-id'));
  return [response.status, body.code, body.error];
};

describe("the platform's HTTP app", () => {
  it("gives every response an ID, the caller's if it is plain, and API headers", async () => {
    const own = await app.request('/list', { headers: { 'x-request-id': 'my-1' } });
    expect(own.headers.get('x-request-id')).toBe('my-1');
    expect(own.headers.get('x-content-type-options')).toBe('nosniff');
    expect(own.headers.get('strict-transport-security')).toBeNull();
    const odd = await app.request('/list', { headers: { 'x-request-id': 'a b' } });
    expect(odd.headers.get('x-request-id')).toMatch(/^req_\w{20}$/);
    const secure = makeApp({ settings: { ...settings, public_url: 'https://tunnel.example' } });
    expect((await secure.request('/list')).headers.get('strict-transport-security')).toContain('max-age');
  });

  it('returns 404 for an unknown path and 405 with Allow for a wrong method, before authentication', async () => {
    expect(await refusal(await app.request('/nothing'))).toEqual([404, 'API_NOT_FOUND', 'Not found: /nothing']);
    const locked = await app.request('/locked', { method: 'DELETE' });
    expect(locked.headers.get('allow')).toBe('GET, HEAD');
    expect((await refusal(locked))[0]).toBe(405);
    expect((await app.request('/echo/1')).headers.get('allow')).toBe('POST');
    expect((await refusal(await app.request('/locked')))[0]).toBe(401);
  });

  it('responds to HEAD as to GET, without a body', async () => {
    const head = await app.request('/list', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('hides internal errors, and returns 503 with Retry-After while the database is unavailable', async () => {
    expect(await refusal(await app.request('/broken'))).toEqual([500, 'INTERNAL', 'internal error']);
    const away = await app.request('/away');
    expect(away.headers.get('retry-after')).toBe('2');
    expect((await refusal(away)).slice(0, 2)).toEqual([503, 'DATABASE_AWAY']);
  });

  it.each([
    ...['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND'],
    ...['EAI_AGAIN', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE', '57P01', '08006', '53300'],
  ])('does not mistake a %s error of a mail server or the payment processor for a database outage', async (code) => {
    const onDatabaseAway = vi.fn();
    const own = makeApp({ onDatabaseAway });
    const failure = Object.assign(new Error(`Connection terminated: ${code}`), { code });
    own.get('/mail', () => Promise.reject(failure));
    own.get('/processor', () => Promise.reject(new AggregateError([failure], 'all failed')));
    for (const path of ['/mail', '/processor']) expect((await own.request(path)).status).toBe(500);
    expect(onDatabaseAway).not.toHaveBeenCalled();
    await own.request('/away');
    expect(onDatabaseAway).toHaveBeenCalledOnce();
  });

  it('returns 503 except for health checks until the tables exist', async () => {
    let ready = false;
    const starting = makeApp({ databaseReady: () => ready });
    expect((await starting.request('/health')).status).toBe(200);
    const early = await starting.request('/list');
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '2']);
    ready = true;
    expect((await starting.request('/list')).status).toBe(200);
  });

  it('trusts X-Forwarded-For only from trusted proxies and networks', async () => {
    const proxied = makeApp({ settings: { ...settings, trusted_proxies: ['10.0.0.0/8', '::1'] } });
    const ask = async (peer: string, forwarded: string) => {
      const headers = { host: 'localhost', 'x-forwarded-for': forwarded };
      const env = { incoming: { socket: { remoteAddress: peer }, url: '/address', headers } };
      return (await proxied.request('/address', {}, env)).text();
    };
    expect(await ask('::ffff:10.1.2.3', '1.1.1.1, 2.2.2.2')).toBe('2.2.2.2');
    expect(await ask('::1', '1.1.1.1, 10.9.9.9')).toBe('1.1.1.1');
    expect(await ask('8.8.8.8', '1.1.1.1')).toBe('8.8.8.8');
    expect(await ask('10.1.2.3', 'rubbish')).toBe('10.1.2.3');
  });

  it("trusts forwarded headers with the edge's secret from any address, and not with a wrong secret", async () => {
    const edgeSecret = new Secret('of this run');
    const fronted = makeApp({ edgeSecret, settings: { ...settings, public_url: 'https://tunnels.example' } });
    const ask = async (headers: Record<string, string>) => {
      const all = { host: 'tunnels.example', ...headers };
      const env = { incoming: { socket: { remoteAddress: '127.0.0.1' }, url: '/address', headers: all } };
      return fronted.request('/address', {}, env);
    };
    const claims = { 'x-forwarded-for': '1.1.1.1, 2.2.2.2', 'x-forwarded-proto': 'https' };
    const vouched = { ...claims, 'x-tunnel-secret': 'of this run' };
    expect(await (await ask(vouched)).text()).toBe('2.2.2.2');
    expect(await (await ask(claims)).text()).toBe('127.0.0.1');
    expect(await (await ask({ ...claims, 'x-tunnel-secret': 'of another run' })).text()).toBe('127.0.0.1');
    const year = async (headers: Record<string, string>) =>
      (await ask(headers)).headers.get('strict-transport-security');
    expect(await year(vouched)).toBe('max-age=31536000');
    expect(await year({ ...vouched, 'x-forwarded-proto': 'http' })).toBeNull();
    expect(await year(claims)).toBeNull();
    // The edge decides which ports visitors may use.
    expect((await ask({ ...vouched, host: 'tunnels.example:80' })).status).toBe(200);
    expect((await ask({ ...claims, host: 'tunnels.example:80' })).status).not.toBe(200);
  });
});

describe('request bodies', () => {
  it('ignore unknown fields, and errors name the invalid field', async () => {
    expect(await (await post('{"label":"a","more":1}')).json()).toEqual({ label: 'a' });
    const [status, , text] = await refusal(await post('{"label":7}'));
    expect([status, text]).toEqual([400, expect.stringMatching(/^label: /)]);
    expect((await refusal(await post('[]')))[2]).toMatch(/^body: /);
    expect((await refusal(await app.request('/echo/1', { method: 'POST' })))[2]).toMatch(/^label: /);
  });

  it('with broken JSON get a 400 that describes the syntax error', async () => {
    const [status, code, text] = await refusal(await post('{"label":"a",}'));
    expect([status, code]).toEqual([400, 'API_BAD_REQUEST']);
    expect(text).toMatch(/^the body is not valid JSON/);
  });

  it.each([[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]])(
    'with the invalid UTF-8 bytes %j are rejected',
    async (...bytes) => {
      const body = Buffer.concat([Buffer.from('{"label":"a'), Buffer.from(bytes), Buffer.from('"}')]);
      expect(await refusal(await post(body))).toEqual([400, 'API_BAD_REQUEST', 'the body is not valid UTF-8']);
      const announced = { 'content-length': String(body.length) };
      expect((await refusal(await post(body, announced)))[2]).toBe('the body is not valid UTF-8');
      // U+FFFD in a valid body is a character like any other.
      expect((await post('{"label":"\ufffd"}')).status).toBe(200);
    },
  );

  it('of another type than JSON get 415', async () => {
    const plain = await post('{"label":"a"}', { 'content-type': 'text/plain' });
    expect((await refusal(plain)).slice(0, 2)).toEqual([415, 'API_MEDIA_TYPE']);
  });

  it.each(['a\\u0000b', '\\ud800', 'x\\udc00y'])('with %s, which is not valid text, are rejected', async (text) => {
    expect((await refusal(await post(`{"label":"${text}"}`)))[2]).toMatch(/^label: /);
    expect((await refusal(await post(`{"label":"a","deep":[{"x":"${text}"}]}`)))[2]).toMatch(/^deep\.0\.x: /);
  });

  it('can contain surrogate pairs and any nesting depth', async () => {
    expect((await post('{"label":"\\ud83d\\ude00"}')).status).toBe(200);
    const depth = 30_000;
    expect((await post(`{"label":"a","deep":${'['.repeat(depth)}${']'.repeat(depth)}}`)).status).toBeLessThan(500);
  });

  it('over 64 KiB get 413, with a declared length or chunked, except batches of edges', async () => {
    const large = JSON.stringify({ label: 'a'.repeat(70_000) });
    expect((await refusal(await post(large, { 'content-length': String(large.length) })))[0]).toBe(413);
    const stream = new Blob([large]).stream();
    expect((await refusal(await post(stream)))[0]).toBe(413);
    expect((await post(large, {}, `${EDGE_LINK_PATH}/records`)).status).toBe(200);
  });
});

describe('numbers in a query', () => {
  it('have a default when absent, and large offsets are capped', async () => {
    expect(await (await app.request('/list')).json()).toEqual({ limit: 20, offset: 0 });
    expect(await (await app.request('/list?limit=100&offset=1000000')).json()).toEqual({ limit: 100, offset: 1e6 });
    const largest = Number.MAX_SAFE_INTEGER;
    expect(await (await app.request(`/list?offset=${'9'.repeat(400)}`)).json()).toEqual({ limit: 20, offset: largest });
  });

  it.each(['0', '101', '1.5', 'x', '', '1e1', '99999999999999999999', '%00'])('reject limit=%s', async (value) => {
    const [status, , text] = await refusal(await app.request(`/list?limit=${value}`));
    expect(status).toBe(400);
    expect(text).toBe(`limit must be an integer from 1 to 100, got '${decodeURIComponent(value)}'`);
  });

  it('reject repeated values and negative offsets', async () => {
    expect((await refusal(await app.request('/list?limit=1&limit=2')))[2]).toMatch(/got '1, 2'$/);
    expect((await refusal(await app.request('/list?offset=-1')))[2]).toBe(
      "offset must be an integer of at least 0, got '-1'",
    );
  });

  it('appear as integers in the OpenAPI document', () => {
    const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'x', version: '1' } });
    expect(document.paths?.['/list']?.get?.parameters?.[0]).toMatchObject({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
    });
  });
});
