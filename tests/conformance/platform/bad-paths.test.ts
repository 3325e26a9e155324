// Invalid paths, ids, methods, headers and queries: the response has the right status, and is never a 500.
import { request } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const NOT_IDS = [
  ...['0', '-1', 'nothing', 'null', 'undefined', '*', '%00', '%0a', '%20', '%ff', '%zz', '%F0%9F%98%80', '%ED%A0%80'],
  ...['%2F', '..%2f..', "'%20or%201=1--", '%7B%7D', '00000000-0000-0000-0000-00000000000g'],
  ...['00000000-0000-0000-0000-000000000000', 'tun_unknown', 'a'.repeat(101), 'a'.repeat(8000)],
];

const WITH_IDS = [
  ['DELETE', '/keys/{id}', 404, 'KEY_UNKNOWN'],
  ['DELETE', '/auth/sessions/{id}', 404, 'LOGIN_SESSION_UNKNOWN'],
  ['DELETE', '/oauth/grants/{id}', 404, 'OAUTH_GRANT_UNKNOWN'],
  ['GET', '/usage/tunnels/{id}', 404, 'TUNNEL_UNKNOWN'],
  ['GET', '/usage/tunnels/{id}/requests', 404, 'TUNNEL_UNKNOWN'],
  ['GET', '/usage/tunnels/{id}/health-events', 404, 'TUNNEL_UNKNOWN'],
  ['GET', '/usage/tunnels/{id}/flows', 404, 'TUNNEL_UNKNOWN'],
  ['GET', '/usage/tunnels/{id}/peers', 404, 'TUNNEL_UNKNOWN'],
  ['DELETE', '/usage/tunnels/{id}/peers/x', 404, 'TUNNEL_UNKNOWN'],
  ['DELETE', '/usage/tunnels/x/peers/{id}', 404, 'TUNNEL_UNKNOWN'],
  ['DELETE', '/tunnels/{id}', 404, 'TUNNEL_UNKNOWN'],
  ['POST', '/usage/tunnels/{id}/requests/x/replay', 404, 'TUNNEL_UNKNOWN'],
  ['POST', '/usage/tunnels/x/requests/{id}/replay', 404, 'TUNNEL_UNKNOWN'],
  ['GET', '/auth/verify-email/{id}', 400, 'MAIL_TOKEN_INVALID'],
] as const;

/** Every path with its methods. */
const METHODS: Readonly<Record<string, string>> = {
  '/auth/register': 'POST',
  '/auth/verify-email/x': 'GET, HEAD',
  '/auth/login': 'POST',
  '/auth/logout': 'POST',
  '/auth/refresh': 'POST',
  '/auth/me': 'GET, PATCH, DELETE, HEAD',
  '/auth/password': 'POST',
  '/auth/email': 'POST',
  '/auth/sign-up': 'GET, HEAD',
  '/auth/forgot-password': 'POST',
  '/auth/reset-password': 'POST',
  '/auth/resend-verification': 'POST',
  '/auth/sessions': 'GET, HEAD',
  '/auth/sessions/x': 'DELETE',
  '/keys': 'GET, POST, HEAD',
  '/keys/x': 'DELETE',
  '/usage': 'GET, HEAD',
  '/usage/chart': 'GET, HEAD',
  '/usage/tunnels': 'GET, HEAD',
  '/usage/tunnels/x': 'GET, HEAD',
  '/usage/tunnels/x/requests': 'GET, HEAD',
  '/usage/regions': 'GET, HEAD',
  '/usage/unguarded': 'GET, HEAD',
  '/usage/tunnels/x/health-events': 'GET, HEAD',
  '/usage/tunnels/x/flows': 'GET, HEAD',
  '/usage/tunnels/x/peers': 'GET, HEAD',
  '/usage/tunnels/x/peers/y': 'DELETE',
  '/tunnels/x': 'DELETE',
  '/usage/tunnels/x/requests/y/replay': 'POST',
  '/load-balancing/groups': 'GET, HEAD',
  '/billing': 'GET, HEAD',
  '/billing/usage': 'GET, HEAD',
  '/billing/subscribe': 'POST',
  '/billing/setup-intent': 'POST',
  '/billing/portal': 'POST',
  '/billing/invoices': 'GET, HEAD',
  '/billing/spend-cap': 'PATCH',
  '/billing/webhook': 'POST',
  '/health': 'GET, HEAD',
  '/health/db': 'GET, HEAD',
  '/.well-known/jwks.json': 'GET, HEAD',
  '/.well-known/oauth-authorization-server': 'GET, OPTIONS, HEAD',
  '/.well-known/oauth-protected-resource': 'GET, OPTIONS, HEAD',
  '/.well-known/oauth-protected-resource/mcp': 'GET, OPTIONS, HEAD',
  '/oauth/token': 'POST',
  '/oauth/revoke': 'POST',
  '/oauth/grants': 'GET, HEAD',
  '/oauth/grants/x': 'DELETE',
  '/openapi.json': 'GET, HEAD',
};

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
beforeAll(async () => {
  ann = await harness.person();
});

const sorted = (list: string | null): string[] => (list ?? '').split(', ').sort();

/** Requests a path without normalizing it, as fetch would. */
const statusOfRaw = (path: string, headers: Record<string, string> = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(harness.url);
    const sent = request({ hostname, port, path, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end();
  });

describe('requests with malformed ids', () => {
  it.each(WITH_IDS)('%s %s returns %i %s', async (method, path, status, code) => {
    for (const id of NOT_IDS) {
      const answer = await harness.ask(method, path.replace('{id}', id), { token: ann.token });
      expect([id, ...refusalOf(answer)]).toEqual([id, status, code]);
    }
  });
});

describe('Contract', () => {
  it(row('Contract', 29, 'unknown paths'), async () => {
    for (const path of [
      '/',
      '/nothing',
      '/v1/keys',
      '/auth',
      '/keys/x/y',
      '/Keys',
      '/usage/',
      '/health/',
      '/internal',
    ]) {
      const answer = await harness.get(path, ann.token);
      expect([path, ...refusalOf(answer)]).toEqual([path, 404, 'API_NOT_FOUND']);
    }
    for (const path of [
      '//keys',
      '/../keys',
      '/%',
      '/%zz',
      '/%00',
      '/usage/tunnels/%',
      `/${'a'.repeat(8000)}`,
      '/keys;x=1',
    ]) {
      expect([path, [400, 401, 404].includes(await statusOfRaw(path))]).toEqual([path, true]);
    }
  });

  it(row('Contract', 29, '405 with Allow'), async () => {
    for (const [path, allowed] of Object.entries(METHODS)) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (allowed.split(', ').includes(method)) continue;
        // The request needs no credentials, because the list of methods is not secret.
        const answer = await harness.ask(method, path);
        expect([method, path, ...refusalOf(answer)]).toEqual([method, path, 405, 'API_METHOD_NOT_ALLOWED']);
        expect([path, sorted(answer.headers.get('allow'))]).toEqual([path, sorted(allowed)]);
      }
    }
  });

  it(row('Contract', 29, '413 and 415 where there is no body to read'), async () => {
    const large = { raw: 'a'.repeat(70_000), headers: { 'content-type': 'text/plain' } };
    for (const path of ['/auth/logout', '/auth/refresh', '/usage/tunnels/x/requests/y/replay']) {
      const answer = await harness.ask('POST', path, { ...large, token: ann.token });
      expect([path, ...refusalOf(answer)]).toEqual([path, 413, 'API_BODY_TOO_LARGE']);
    }
  });

  it(row('Contract', 17), async () => {
    const given = [
      ['application/json', '{broken'],
      ['application/json', '{"token":7}'],
      ['text/plain', 'hello'],
      ['application/json', '\u0000'],
    ] as const;
    for (const [type, raw] of given) {
      const { cookie } = await harness.enter(ann.email);
      const question = { raw, headers: { 'content-type': type } };
      const refreshed = await harness.ask('POST', '/auth/refresh', { ...question, cookie });
      expect(refreshed.status).toBe(200);
      expect((await harness.ask('POST', '/auth/logout', { ...question, cookie: refreshed.cookie })).status).toBe(204);
    }
  });

  it(row('Contract', 28), async () => {
    const seen = new Set<string | null>();
    const answers: Answer[] = [];
    for (const path of ['/health', '/keys', '/nothing', '/usage/tunnels/x', '/openapi.json', '/docs']) {
      answers.push(await harness.get(path), await harness.get(path, ann.token));
    }
    for (const { headers } of answers) seen.add(headers.get('x-request-id'));
    expect([seen.size, seen.has(null)]).toEqual([answers.length, false]);
    const own = await harness.ask('GET', '/nothing', { headers: { 'x-request-id': 'my-id.7' } });
    expect(own.body).toMatchObject({ request_id: 'my-id.7' });
    for (const odd of ['a b', 'x'.repeat(65), '<script>', '"']) {
      const answer = await harness.ask('GET', '/nothing', { headers: { 'x-request-id': odd } });
      expect(answer.headers.get('x-request-id')).not.toBe(odd);
    }
  });
});

it('unknown query parameters and irrelevant headers are ignored', async () => {
  expect((await harness.get('/usage/chart?days=3&nothing=%00&__proto__=1&limit=abc', ann.token)).status).toBe(200);
  const headers = { 'x-forwarded-for': 'nonsense, 1.2.3.4', 'content-encoding': 'nonsense', accept: 'image/png' };
  expect((await harness.ask('GET', '/keys', { token: ann.token, headers })).status).toBe(200);
});
