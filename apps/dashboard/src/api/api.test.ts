import type { PlatformAnswer, PlatformFetch, PlatformRequest } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { renewingFetch, shouldRetry } from './api.ts';

const setUp = (good: string, renew: () => Promise<string>) => {
  const sent: (string | undefined)[] = [];
  const fetch: PlatformFetch = async (_url, { headers }): Promise<PlatformAnswer> => {
    sent.push(headers['authorization']);
    const status = headers['authorization'] === `Bearer ${good}` ? 200 : 401;
    return { status, headers: { get: () => null }, text: async () => '' };
  };
  const session = { accessToken: 'old', renew };
  return { sent, session, call: renewingFetch(fetch, session) };
};

const withToken = (token: string): PlatformRequest => ({
  method: 'POST',
  headers: { authorization: `Bearer ${token}` },
  body: '{}',
  redirect: 'error',
});

it('a call with an expired token renews the token once and is repeated', async () => {
  const { call, sent } = setUp('new', async () => 'new');
  expect((await call('/keys', withToken('old'))).status).toBe(200);
  expect(sent).toEqual(['Bearer old', 'Bearer new']);
});

it('a call with an expired token uses a token renewed by a parallel call', async () => {
  const { call, sent, session } = setUp('new', () => Promise.reject(new Error('not asked')));
  session.accessToken = 'new';
  expect((await call('/keys', withToken('old'))).status).toBe(200);
  expect(sent).toEqual(['Bearer old', 'Bearer new']);
});

it('a call is not repeated after a second 401, and the caller gets the 401', async () => {
  const { call, sent } = setUp('never', async () => 'new');
  expect((await call('/keys', withToken('old'))).status).toBe(401);
  expect(sent).toHaveLength(2);
});

it('a call with a failed token renewal fails with the error of the renewal', async () => {
  const { call } = setUp('never', () => Promise.reject(new Fault('REFRESH_INVALID')));
  await expect(call('/keys', withToken('old'))).rejects.toMatchObject({ code: 'REFRESH_INVALID' });
});

it('a wrong password at sign-in does not renew the token', async () => {
  const { call, sent } = setUp('new', () => Promise.reject(new Error('not asked')));
  expect((await call('/auth/login', { ...withToken(''), headers: {} })).status).toBe(401);
  expect(sent).toEqual([undefined]);
});

it("a call with the user's password is sent only once, and the response stays readable", async () => {
  const body = JSON.stringify({ error: 'the password is wrong', code: 'PASSWORD_WRONG' });
  let calls = 0;
  const fetch: PlatformFetch = async () => {
    calls += 1;
    return { status: 401, headers: { get: () => null }, text: async () => body };
  };
  const session = { accessToken: 'old', renew: () => Promise.reject(new Error('not asked')) };
  const answer = await renewingFetch(fetch, session)('/auth/password', withToken('old'));
  expect([answer.status, await answer.text(), calls]).toEqual([401, body, 1]);
});

it.each([
  [new Fault('EDGE_AWAY'), [true, true, false]],
  [new Fault('KEY_UNKNOWN'), [false, false, false]],
  [new Fault('DATABASE_AWAY'), [false, false, false]],
  [new Fault('CLIENT_PLATFORM_UNREACHABLE'), [false, false, false]],
  [new TypeError('a bug'), [false, false, false]],
])('a query that fails with %s is retried after 0, 1 and 2 failures: %j', (error, expected) => {
  expect([0, 1, 2].map((count) => shouldRetry(count, error))).toEqual(expected);
});
