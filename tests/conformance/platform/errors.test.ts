// The shape and meaning of errors, small response bodies, the API document, and responses to browsers on other sites.
import { messageBody, okBody } from '@tunnel/contract';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { newEmail, onSharedPlatform, PASSWORD, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { entryWhen, openTunnel } from './tunnels.fixture.ts';

const SPECIFIED = [
  ...['post /auth/register', 'get /auth/verify-email/{token}', 'post /auth/login', 'post /auth/logout'],
  ...['post /auth/refresh', 'get /auth/me', 'post /auth/forgot-password', 'post /auth/reset-password'],
  ...['get /keys', 'post /keys', 'delete /keys/{id}', 'get /usage', 'get /usage/chart', 'get /usage/tunnels'],
  ...['get /usage/tunnels/{id}', 'get /usage/tunnels/{id}/requests', 'get /load-balancing/groups'],
  ...['get /health', 'get /health/db'],
];
const EXTENSIONS = [
  ...['post /auth/resend-verification', 'patch /auth/me', 'get /auth/sessions', 'delete /auth/sessions/{id}'],
  ...['get /usage/regions', 'get /usage/unguarded', 'get /billing/usage'],
  ...['get /usage/tunnels/{id}/health-events', 'post /usage/tunnels/{id}/requests/{request_id}/replay'],
  'get /.well-known/jwks.json',
];

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}
interface Operation {
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, unknown>>;
}

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
});

const document = async (): Promise<Document> => (await harness.get('/openapi.json')).body as Document;
const operations = async (): Promise<Map<string, Operation>> => {
  const { paths } = await document();
  const pairs = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method} ${path}`, operation] as const),
  );
  return new Map(pairs);
};

describe('Errors', () => {
  it(row('Errors', 1), async () => {
    // Repeats the check that every request of this folder makes, without testing anything else.
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['GET', '/keys'],
      ['POST', '/auth/refresh'],
      ['PUT', '/keys'],
    ]) {
      const { status, body, headers } = await harness.ask(method ?? '', path ?? '');
      expect(status).toBeGreaterThanOrEqual(400);
      expect(Object.keys(body as object)).toEqual(['error', 'code', 'request_id']);
      expect(headers.get('content-type')).toBe('application/json');
    }
  });

  it(row('Errors', 2), async () => {
    const statuses = [
      await harness.post('/keys', {}, ann.token),
      await harness.get('/keys'),
      await harness.login(await harness.external()),
      await harness.ask('DELETE', `/keys/${crypto.randomUUID()}`, { token: ann.token }),
      await harness.post('/auth/register', { email: ann.email, password: PASSWORD }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([400, 401, 403, 404, 409]);
  });

  it(row('Errors', 3), async () => {
    for (const email of [ann.email, newEmail(), await harness.external(), 'nobody', '']) {
      expect((await harness.post('/auth/forgot-password', { email })).status).toBe(200);
    }
  });

  it(row('Errors', 4), async () => {
    const { tunnel, key } = await openTunnel(harness, ann);
    const { id } = await entryWhen(harness, ann, tunnel.tunnelId);
    const asks = [id, tunnel.tunnelId].flatMap((name) => [
      harness.get(`/usage/tunnels/${name}`, bob.token),
      harness.get(`/usage/tunnels/${name}/requests`, bob.token),
      harness.get(`/usage/tunnels/${name}/health-events`, bob.token),
      harness.post(`/usage/tunnels/${name}/requests/x/replay`, {}, bob.token),
    ]);
    for (const answer of await Promise.all(asks)) expect(refusalOf(answer)).toEqual([404, 'TUNNEL_UNKNOWN']);
    const removed = await harness.ask('DELETE', `/keys/${key.id}`, { token: bob.token });
    const absent = await harness.ask('DELETE', `/keys/${crypto.randomUUID()}`, { token: bob.token });
    // Hidden and missing objects get the same answer.
    expect([...refusalOf(removed), removed.error]).toEqual([...refusalOf(absent), absent.error]);
    expect(removed.status).toBe(404);
    expect((await harness.get('/keys', ann.token)).text).toContain(key.id);
    expect((await harness.get('/usage/tunnels', bob.token)).body).toEqual([]);
  });
});

describe('Small bodies', () => {
  it(row('Small bodies', 1), async () => {
    const { body } = await harness.get('/keys');
    expect(body).toEqual({ error: expect.any(String), code: expect.any(String), request_id: expect.any(String) });
  });
  it(row('Small bodies', 2), async () => {
    messageBody.strict().parse((await harness.post('/auth/forgot-password', { email: ann.email })).body);
  });
  it(row('Small bodies', 3), async () => {
    for (const path of ['/health', '/health/db']) {
      expect(okBody.strict().parse((await harness.get(path)).body)).toEqual({ ok: true });
    }
  });
});

describe('Versioning', () => {
  it(row('Versioning', 1), async () => {
    const { openapi, info, paths } = await document();
    expect([openapi, info.version]).toEqual(['3.1.0', '0.2.24']);
    expect(Object.keys(paths).filter((path) => /\/v\d/.test(path))).toEqual([]);
    expect([...(await operations()).keys()]).toEqual(expect.arrayContaining(SPECIFIED));
  });

  it(row('Versioning', 1, 'every status that can be reached is told'), async () => {
    const told = await operations();
    const statuses = (name: string): string[] => Object.keys(told.get(name)?.responses ?? {});
    expect(statuses('post /auth/register')).toEqual(expect.arrayContaining(['201', '400', '409', '413', '415', '429']));
    expect(statuses('post /auth/login')).toEqual(expect.arrayContaining(['200', '400', '401', '403', '429']));
    expect(statuses('get /usage/tunnels/{id}/requests')).toEqual(
      expect.arrayContaining(['200', '400', '401', '403', '404', '502']),
    );
    for (const [name, { security = [] }] of told) {
      const isUsers =
        /\/(keys|tunnels|usage|reservations|domains|load-balancing|billing|auth\/(me|sessions|password|email)|oauth\/(grants|requests))\b/.test(
          name,
        );
      const isPublic = !isUsers || name.includes('jwks') || name === 'post /billing/webhook';
      expect([name, security.length === 0]).toEqual([name, isPublic]);
    }
  });

  it(row('Contract', 32), async () => {
    const told = await operations();
    const tagged = [...told].filter(([, { tags }]) => tags.includes('extensions')).map(([name]) => name);
    expect(tagged).toEqual(expect.arrayContaining(EXTENSIONS));
    expect(tagged.filter((name) => SPECIFIED.includes(name))).toEqual([]);
    expect([...told.keys()].filter((name) => name.includes('/internal'))).toEqual([]);
  });
});

it(row('Contract', 16), async () => {
  const email = newEmail();
  expect((await harness.post('/auth/register', { email, password: PASSWORD })).status).toBe(201);
  const again = await harness.post('/auth/register', { email: ` ${email.toUpperCase()}`, password: 'another one' });
  expect(refusalOf(again)).toEqual([409, 'ACCOUNT_EXISTS']);
  const external = await harness.external();
  expect((await harness.post('/auth/register', { email: external, password: PASSWORD })).status).toBe(409);
});
