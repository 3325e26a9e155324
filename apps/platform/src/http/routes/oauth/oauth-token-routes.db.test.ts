import type { OauthTokens } from '@tunnel/contract';
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../limits.ts';
import {
  CLIENT_ID,
  type FormValues,
  type OauthFixture,
  openOauth,
  REDIRECT_URI,
  RESOURCE,
  refusalOf,
} from './oauth.fixture.ts';

let fixture: OauthFixture;
const email = 'ann@example.com';

beforeAll(async () => {
  fixture = await openOauth();
  await fixture.accounts.signUp(email);
});
afterAll(() => fixture.close());

const auditOf = async (grantId: string) =>
  (await fixture.accounts.auditOf('oauth.revoked')).filter(({ details }) => details['grant_id'] === grantId);

describe('POST /oauth/token with a code', () => {
  it('returns a refresh token, and an access token for /mcp that verifies against the published keys', async () => {
    const { grantId, form } = await fixture.allow(email);
    const answer = await fixture.token({ ...form, resource: RESOURCE });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const body = (await answer.json()) as Record<string, string>;
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      scope: 'tunnels:read requests:read',
    });
    const token = body['access_token'] ?? '';
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'EdDSA', typ: 'at+jwt' });
    const keys = (await (await fixture.accounts.ask('GET', '/.well-known/jwks.json')).json()) as JSONWebKeySet;
    const { payload } = await jwtVerify(token, createLocalJWKSet(keys), {
      issuer: 'http://localhost:8080',
      audience: RESOURCE,
      currentDate: new Date(fixture.accounts.clock.now()),
    });
    expect(payload).toMatchObject({
      sub: await fixture.userId(email),
      grant_id: grantId,
      client_id: CLIENT_ID,
      epoch: 0,
      scope: 'tunnels:read requests:read',
      exp: (payload.iat ?? 0) + 900,
    });
    expect(await fixture.scopesAtMcp(token)).toEqual(['tunnels:read', 'requests:read']);
  });

  it('stores neither code nor refresh token in plain text', async () => {
    const { form } = await fixture.allow(email);
    const { refresh_token } = await fixture.tokens(form);
    const { db } = fixture.accounts.database;
    const rows = [
      await db.selectFrom('oauth_codes').selectAll().execute(),
      await db.selectFrom('oauth_refresh_tokens').selectAll().execute(),
    ];
    const stored = JSON.stringify(rows);
    expect(stored).not.toContain(refresh_token);
    expect(stored).not.toContain(form['code']);
  });

  it.each<[string, FormValues, string]>([
    ['another client', { client_id: 'https://evil.example/client.json' }, 'invalid_grant'],
    ['another verifier', { code_verifier: 'x'.repeat(43) }, 'invalid_grant'],
    ['an empty verifier', { code_verifier: undefined }, 'invalid_request'],
    ['another redirect URI', { redirect_uri: `${REDIRECT_URI}/` }, 'invalid_grant'],
    ['no redirect URI', { redirect_uri: undefined }, 'invalid_request'],
    ['another resource', { resource: 'http://localhost:8080/' }, 'invalid_target'],
    ['a code that was never given', { code: 'x'.repeat(43) }, 'invalid_grant'],
    ['no code', { code: undefined }, 'invalid_request'],
    ['no client', { client_id: undefined }, 'invalid_request'],
    ['no grant type', { grant_type: undefined }, 'invalid_request'],
    ['another grant type', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
  ])('rejects %s without using up the code', async (_what, change, error) => {
    const { form } = await fixture.allow(email);
    expect(await refusalOf(await fixture.token({ ...form, ...change }))).toEqual([400, error]);
    expect((await fixture.token(form)).status).toBe(200);
  });

  it('rejects a code after a minute', async () => {
    const { form } = await fixture.allow(email);
    await fixture.accounts.clock.advance(60_000);
    expect(await refusalOf(await fixture.token(form))).toEqual([400, 'invalid_grant']);
  });

  it('ends the grant and its tokens if a code is used twice, by any client', async () => {
    const { grantId, form } = await fixture.allow(email);
    const { access_token, refresh_token } = await fixture.tokens(form);
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
    const thief = { ...form, client_id: 'https://evil.example/client.json', code_verifier: 'x'.repeat(43) };
    expect(await refusalOf(await fixture.token(thief))).toEqual([400, 'invalid_grant']);
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
    expect(await refusalOf(await fixture.token(fixture.refreshForm(refresh_token)))).toEqual([400, 'invalid_grant']);
    expect(await auditOf(grantId)).toMatchObject([{ actor: 'system', details: { reason: 'code-reused' } }]);
  });

  it('redeems a code once under concurrent requests, and ends the grant because of the reuse', async () => {
    const { grantId, form } = await fixture.allow(email);
    const answers = await Promise.all(Array.from({ length: 8 }, () => fixture.token(form)));
    const good = answers.filter(({ status }) => status === 200);
    expect([good.length, answers.length - good.length]).toEqual([1, 7]);
    const { access_token } = ((await good[0]?.json()) ?? {}) as OauthTokens;
    expect(await fixture.scopesAtMcp(access_token)).toBeNull();
    expect(await auditOf(grantId)).toHaveLength(1);
  });

  it.each([
    ['JSON', '{"grant_type":"authorization_code"}', 'application/json'],
    ['no type', 'grant_type=authorization_code', ''],
    ['a field twice', 'grant_type=refresh_token&client_id=a&client_id=b&refresh_token=x', undefined],
    ['nothing', '', undefined],
    ['odd bytes', '%00=%ff&grant_type=%00', undefined],
  ])('rejects %s with an error of RFC 6749', async (_what, body, type) => {
    const answer = await fixture.sendRaw('/oauth/token', body, type);
    expect(answer.status).toBe(400);
    const refusal = (await answer.json()) as object;
    expect(Object.keys(refusal)).toEqual(['error', 'error_description']);
  });

  it('returns 429 for the eleventh request of an address within a minute', async () => {
    const limited = await openOauth({ settings: { limits: { auth_per_minute: 10, auth_per_account_per_minute: 5 } } });
    const statuses: number[] = [];
    for (let n = 0; n < 11; n += 1) statuses.push((await limited.token({})).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 400), 429]);
    await limited.close();
  });
});

describe('POST /oauth/token with a refresh token', () => {
  const connect = async () => fixture.tokens((await fixture.allow(email)).form);

  it('returns new tokens for all or fewer scopes; fewer scopes do not limit the next refresh', async () => {
    const first = await connect();
    const fewer = await fixture.tokens(fixture.refreshForm(first.refresh_token, { scope: 'requests:read' }));
    expect([fewer.scope, await fixture.scopesAtMcp(fewer.access_token)]).toEqual(['requests:read', ['requests:read']]);
    const all = await fixture.tokens(fixture.refreshForm(fewer.refresh_token, { resource: RESOURCE }));
    expect(all.scope).toBe('tunnels:read requests:read');
    // Extra spaces in a scope are ignored, as at the authorization endpoint.
    const odd = await fixture.tokens(
      fixture.refreshForm(all.refresh_token, { scope: ' requests:read  tunnels:read ' }),
    );
    const none = await fixture.tokens(fixture.refreshForm(odd.refresh_token, { scope: ' ' }));
    expect([odd.scope, none.scope]).toEqual([all.scope, all.scope]);
    expect(new Set([first, fewer, all].map(({ refresh_token }) => refresh_token)).size).toBe(3);
  });

  it.each<[string, FormValues, string]>([
    ['a scope that was not allowed', { scope: 'tunnels:read tunnels:close' }, 'invalid_scope'],
    ['a scope that there is not', { scope: 'admin' }, 'invalid_scope'],
    ['another client', { client_id: 'https://evil.example/client.json' }, 'invalid_grant'],
    ['another resource', { resource: 'https://evil.example/mcp' }, 'invalid_target'],
    ['an unknown token', { refresh_token: 'x'.repeat(43) }, 'invalid_grant'],
    ['no token', { refresh_token: undefined }, 'invalid_request'],
  ])('rejects %s without using up the token', async (_what, change, error) => {
    const { refresh_token } = await connect();
    expect(await refusalOf(await fixture.token(fixture.refreshForm(refresh_token, change)))).toEqual([400, error]);
    await fixture.accounts.clock.advance(LIMITS.REFRESH_GRACE_MS + 1);
    expect((await fixture.token(fixture.refreshForm(refresh_token))).status).toBe(200);
  });

  it('accepts a used token 5 more times within 10 s, and ends the grant on the next use', async () => {
    const { refresh_token } = await connect();
    const statuses: number[] = [];
    for (let n = 0; n < 7; n += 1) statuses.push((await fixture.token(fixture.refreshForm(refresh_token))).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 400]);
  });

  it('ends the grant if a token is reused after the grace time, because the token was copied', async () => {
    const { form, grantId } = await fixture.allow(email);
    const first = await fixture.tokens(form);
    const second = await fixture.tokens(fixture.refreshForm(first.refresh_token));
    await fixture.accounts.clock.advance(LIMITS.REFRESH_GRACE_MS + 1);
    expect(await refusalOf(await fixture.token(fixture.refreshForm(first.refresh_token)))).toEqual([
      400,
      'invalid_grant',
    ]);
    expect(await fixture.scopesAtMcp(second.access_token)).toBeNull();
    expect((await fixture.token(fixture.refreshForm(second.refresh_token))).status).toBe(400);
    expect(await auditOf(grantId)).toMatchObject([{ actor: 'system', details: { reason: 'token-reused' } }]);
  });

  it('rejects a token after 30 days without use', async () => {
    const { refresh_token } = await connect();
    await fixture.accounts.clock.advance(LIMITS.REFRESH_TOKEN_SECS * 1000);
    expect(await refusalOf(await fixture.token(fixture.refreshForm(refresh_token)))).toEqual([400, 'invalid_grant']);
  });

  it('rejects refresh tokens of the dashboard, and the dashboard rejects refresh tokens of apps', async () => {
    const { refresh_token } = await connect();
    expect((await fixture.accounts.refresh(`refresh_token=${refresh_token}`)).status).toBe(401);
    const { cookie } = await fixture.accounts.logIn(email);
    const shown = fixture.refreshForm(cookie.slice('refresh_token='.length));
    expect(await refusalOf(await fixture.token(shown))).toEqual([400, 'invalid_grant']);
    expect((await fixture.accounts.refresh(cookie)).status).toBe(200);
  });
});

describe('POST /oauth/revoke', () => {
  it.each(['refresh_token', 'access_token'] as const)('ends the whole grant of a %s', async (kind) => {
    const { grantId, form } = await fixture.allow(email);
    const tokens = await fixture.tokens(form);
    const answer = await fixture.send('/oauth/revoke', { token: tokens[kind], client_id: CLIENT_ID });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    expect(await fixture.scopesAtMcp(tokens.access_token)).toBeNull();
    expect((await fixture.token(fixture.refreshForm(tokens.refresh_token))).status).toBe(400);
    const actor = `user:${await fixture.userId(email)}`;
    expect(await auditOf(grantId)).toMatchObject([{ actor, details: { reason: 'client', client_id: CLIENT_ID } }]);
  });

  it('returns 200 for any other token and ends no grant', async () => {
    const { refresh_token, access_token } = await fixture.tokens((await fixture.allow(email)).form);
    const { bearer } = await fixture.accounts.logIn(email);
    const login = bearer['authorization']?.slice('Bearer '.length);
    for (const values of [{}, { token: 'x' }, { token: login }, { token: refresh_token, client_id: 'other' }]) {
      expect((await fixture.send('/oauth/revoke', values)).status).toBe(200);
    }
    expect((await fixture.sendRaw('/oauth/revoke', '{}', 'application/json')).status).toBe(200);
    expect(await fixture.scopesAtMcp(access_token)).not.toBeNull();
    const me = await fixture.accounts.ask('GET', '/auth/me', undefined, bearer);
    expect(me.status).toBe(200);
  });
});
