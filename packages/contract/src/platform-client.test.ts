import { describe, expect, it } from 'vitest';
import type { PlatformAnswer, PlatformRequest } from './platform-call.ts';
import { PlatformClient } from './platform-client.ts';

interface Ask extends PlatformRequest {
  readonly url: string;
}

const answering = (status: number, body: string, headers: Record<string, string> = {}) => {
  const asks: Ask[] = [];
  const client = new PlatformClient({
    url: 'https://platform.example.com/base/',
    fetch: async (url, request): Promise<PlatformAnswer> => {
      asks.push({ url, ...request });
      return { status, headers: { get: (name) => headers[name] ?? null }, text: async () => body };
    },
    accessToken: () => 'access',
  });
  return { client, asks };
};

const BEARER = { accept: 'application/json', authorization: 'Bearer access' };
const faultOf = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);

describe('a platform client call', () => {
  it('accepts the global fetch', () => {
    expect(new PlatformClient({ url: 'http://127.0.0.1', fetch })).toBeInstanceOf(PlatformClient);
  });

  it('calls fetch as a plain function, as browsers require', async () => {
    let asMethod: boolean | undefined;
    const fetch = async function (this: unknown): Promise<PlatformAnswer> {
      asMethod = this !== undefined;
      return { status: 204, headers: { get: () => null }, text: async () => '' };
    };
    await new PlatformClient({ url: 'http://127.0.0.1', fetch }).logOut();
    expect(asMethod).toBe(false);
  });

  it.each<[string, (client: PlatformClient) => Promise<unknown>]>([
    ['GET /auth/me', (client) => client.me()],
    ['GET /auth/sessions', (client) => client.sessions()],
    ['DELETE /auth/sessions/a%2Fb', (client) => client.endSession('a/b')],
    ['GET /keys', (client) => client.keys()],
    ['POST /keys', (client) => client.createKey({ label: 'laptop' })],
    ['DELETE /keys/..%2Fusage', (client) => client.revokeKey('../usage')],
    ['GET /usage', (client) => client.usage()],
    ['GET /usage/chart', (client) => client.usageChart()],
    ['GET /usage/chart?days=7', (client) => client.usageChart({ days: 7 })],
    ['GET /usage/tunnels?limit=5&offset=10', (client) => client.tunnels({ limit: 5, offset: 10 })],
    ['GET /usage/tunnels?protocol=tcp&state=closed', (client) => client.tunnels({ protocol: 'tcp', state: 'closed' })],
    ['GET /usage/regions', (client) => client.regions()],
    ['GET /usage/tunnels/t%3F', (client) => client.tunnel('t?')],
    ['GET /usage/tunnels/t/requests?limit=2', (client) => client.requests('t', { limit: 2 })],
    [
      'GET /usage/tunnels/t/requests?limit=2&cursor=a%26b',
      (client) => client.requests('t', { limit: 2, cursor: 'a&b' }),
    ],
    ['POST /usage/tunnels/t/requests/r/replay', (client) => client.replay('t', 'r')],
    ['GET /usage/tunnels/t/health-events', (client) => client.healthEvents('t')],
    ['GET /usage/tunnels/t/policy', (client) => client.policy('t')],
    ['GET /usage/unguarded', (client) => client.unguardedTunnels()],
    ['GET /reservations', (client) => client.reservations()],
    ['POST /reservations', (client) => client.reserve({ kind: 'tcp', label: '20042' })],
    ['DELETE /reservations/..%2Fkeys', (client) => client.release('../keys')],
    ['GET /load-balancing/groups', (client) => client.pools()],
    ['GET /billing', (client) => client.billing()],
    ['GET /billing/usage', (client) => client.billingUsage()],
    ['POST /billing/subscribe', (client) => client.subscribe()],
    ['POST /billing/setup-intent', (client) => client.createSetupIntent()],
    ['POST /billing/portal', (client) => client.openPortal({ return_url: 'https://example.com' })],
    ['GET /billing/invoices', (client) => client.invoices()],
    ['PATCH /billing/spend-cap', (client) => client.setSpendCap({ spend_cap_cents: null })],
    ['PATCH /auth/me', (client) => client.updateMe({ display_name: 'Ann' })],
    ['DELETE /auth/me', (client) => client.deleteAccount({ password: 'x' })],
    ['POST /auth/password', (client) => client.changePassword({ current_password: 'x', new_password: 'y' })],
    ['POST /auth/email', (client) => client.changeEmail({ password: 'x', new_email: 'b@example.com' })],
  ])('%s has the access token, and keeps the path of the base URL', async (line, call) => {
    const { client, asks } = answering(418, 'tea');
    await faultOf(call(client));
    expect(`${asks[0]?.method} ${asks[0]?.url}`).toBe(line.replace(' ', ' https://platform.example.com/base'));
    expect(asks[0]).toMatchObject({ headers: BEARER, redirect: 'error' });
  });

  it.each<[string, (client: PlatformClient) => Promise<unknown>, object]>([
    ['register', (client) => client.register({ email: 'a', password: 'b' }), { email: 'a', password: 'b' }],
    ['resend-verification', (client) => client.resendVerification('a'), { email: 'a' }],
    ['forgot-password', (client) => client.forgotPassword('a'), { email: 'a' }],
    ['reset-password', (client) => client.resetPassword({ token: 't', password: 'b' }), { token: 't', password: 'b' }],
  ])('POST /auth/%s has its body, and no access token', async (name, call, body) => {
    const { client, asks } = answering(200, '{"message":"done"}');
    expect(await call(client)).toEqual({ message: 'done' });
    expect(asks[0]?.url).toBe(`https://platform.example.com/base/auth/${name}`);
    expect(asks[0]?.headers).toEqual({ accept: 'application/json', 'content-type': 'application/json' });
    expect(JSON.parse(asks[0]?.body ?? '')).toEqual(body);
  });
});

it.each([
  [undefined, '/auth/sign-up'],
  ['a&b', '/auth/sign-up?invite=a%26b'],
])('the terms of sign-up are requested with the invitation %s, without an access token', async (invite, path) => {
  const terms = { sign_up: 'invite', invite_valid: false, invited_email: null };
  const { client, asks } = answering(200, JSON.stringify(terms));
  expect(await client.signUpTerms(invite)).toEqual(terms);
  expect(asks[0]?.url).toBe(`https://platform.example.com/base${path}`);
  expect(asks[0]?.headers).toEqual({ accept: 'application/json' });
});

it('a password change sends the refresh token of the session that stays open', async () => {
  const { client, asks } = answering(200, '{"message":"done","access_token":"next","ended_sessions":2}');
  const change = { current_password: 'x', new_password: 'y' };
  expect(await client.changePassword(change, 'mine')).toMatchObject({ access_token: 'next', ended_sessions: 2 });
  expect(asks[0]?.headers).toMatchObject({ ...BEARER, cookie: 'refresh_token=mine' });
});

it('an idempotency key is sent with its order', async () => {
  const { client, asks } = answering(200, '{"client_secret":"seti_1_secret_2"}');
  await client.createSetupIntent({ idempotencyKey: 'once' });
  await client.createSetupIntent();
  expect(asks.map(({ headers }) => headers['idempotency-key'])).toEqual(['once', undefined]);
});

describe('the refresh token', () => {
  const body = '{"access_token":"next"}';

  it('is sent as a cookie, and the new token is returned', async () => {
    const cookie = 'other=1; Path=/, refresh_token=new-1_a; Max-Age=2592000; Path=/auth; HttpOnly';
    const { client, asks } = answering(200, body, { 'set-cookie': cookie });
    expect(await client.refresh('old')).toEqual({ body: { access_token: 'next' }, refreshToken: 'new-1_a' });
    expect(asks[0]?.headers).toEqual({ accept: 'application/json', cookie: 'refresh_token=old' });
  });

  it('is left to the browser if none is given', async () => {
    const { client, asks } = answering(200, body);
    expect(await client.refresh()).toEqual({ body: { access_token: 'next' }, refreshToken: null });
    expect(asks[0]?.headers).toEqual({ accept: 'application/json' });
  });
});

describe('an answer of the platform', () => {
  it('keeps fields of a later version', async () => {
    const { client } = answering(200, '{"access_token":"a","later":1}');
    expect((await client.refresh()).body).toEqual({ access_token: 'a', later: 1 });
  });

  it('with an error becomes a fault with its code, message and request id', async () => {
    const { client } = answering(404, '{"error":"no such key","code":"KEY_UNKNOWN","request_id":"req-7"}');
    expect(await faultOf(client.revokeKey('x'))).toMatchObject({
      code: 'KEY_UNKNOWN',
      message: 'no such key',
      values: { request_id: 'req-7' },
    });
  });

  it.each([
    ['4', { request_id: 'req-7', seconds: 4 }],
    ['Wed, 21 Oct 2030 07:28:00 GMT', { request_id: 'req-7' }],
  ])('with Retry-After in seconds becomes a fault with that wait: %s', async (after, values) => {
    const body = '{"error":"too many attempts","code":"LOGIN_THROTTLED","request_id":"req-7"}';
    const { client } = answering(429, body, { 'retry-after': after });
    expect(await faultOf(client.checkDomain('x'))).toMatchObject({ code: 'LOGIN_THROTTLED', values });
  });

  it.each([
    [200, '{}', 'CLIENT_NOT_A_PLATFORM', 'unexpected response to GET /keys'],
    [200, '<html>', 'CLIENT_NOT_A_PLATFORM', 'unexpected response to GET /keys'],
    [301, '', 'CLIENT_NOT_A_PLATFORM', 'the server responded with status 301'],
    [502, '<html>', 'CLIENT_PLATFORM_UNREACHABLE', 'the server responded with status 502'],
  ])('of %i %s becomes %s', async (status, text, code, words) => {
    const fault = await faultOf(answering(status, text).client.keys());
    expect(fault).toMatchObject({ code, message: expect.stringContaining(words) as string });
  });

  it('that never arrives becomes a retryable fault', async () => {
    const client = new PlatformClient({
      url: 'http://127.0.0.1',
      fetch: () => Promise.reject(new TypeError('failed')),
    });
    expect(await faultOf(client.usage())).toMatchObject({ code: 'CLIENT_PLATFORM_UNREACHABLE', retryable: true });
  });
});
