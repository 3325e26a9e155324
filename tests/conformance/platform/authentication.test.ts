// Authentication: valid and invalid tokens, cookies, and suspended accounts.
import { type AccessToken, publicKeys } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { isSignedBy, readJwt, tampered } from './jwt.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

/** All operations that require a user; {id} stands for any id. */
const USER_SCOPED = [
  ['GET', '/auth/me'],
  ['PATCH', '/auth/me'],
  ['DELETE', '/auth/me'],
  ['POST', '/auth/password'],
  ['POST', '/auth/email'],
  ['GET', '/auth/sessions'],
  ['DELETE', '/auth/sessions/x'],
  ['GET', '/keys'],
  ['POST', '/keys'],
  ['DELETE', '/keys/x'],
  ['GET', '/usage'],
  ['GET', '/usage/chart'],
  ['GET', '/usage/tunnels'],
  ['GET', '/usage/tunnels/x'],
  ['GET', '/usage/tunnels/x/requests'],
  ['GET', '/usage/regions'],
  ['GET', '/usage/unguarded'],
  ['GET', '/usage/tunnels/x/health-events'],
  ['GET', '/usage/tunnels/x/flows'],
  ['GET', '/usage/tunnels/x/peers'],
  ['DELETE', '/usage/tunnels/x/peers/y'],
  ['POST', '/usage/tunnels/x/requests/y/replay'],
  ['GET', '/load-balancing/groups'],
] as const;

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
});

const keys = async () => publicKeys.parse((await harness.get('/.well-known/jwks.json')).body).keys;

describe('Authentication', () => {
  it(row('Authentication', 1), async () => {
    const answer = await harness.login(ann.email);
    const { claims } = readJwt((answer.body as AccessToken).access_token);
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(15 * 60);
    const cookie = answer.headers.get('set-cookie') ?? '';
    expect(cookie.split('; ').slice(1).sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/auth', 'SameSite=Lax']);
  });

  it(row('Authentication', 2), async () => {
    for (const [method, path] of USER_SCOPED) {
      expect([method, path, ...refusalOf(await harness.ask(method, path))]).toEqual([
        ...[method, path, 401, 'ACCESS_TOKEN_MISSING'],
      ]);
    }
    for (const path of ['/health', '/health/db', '/openapi.json', '/docs', '/.well-known/jwks.json']) {
      expect([path, (await harness.get(path)).status]).toEqual([path, 200]);
      expect([path, (await harness.get(path, 'nonsense')).status]).toEqual([path, 200]);
    }
  });

  it(row('Authentication', 2, 'other forms of the header'), async () => {
    const me = async (authorization: string) =>
      refusalOf(await harness.ask('GET', '/auth/me', { headers: { authorization } }));
    expect(await me(`bearer ${ann.token}`)).toEqual([200, '']);
    const wrong = [ann.token, `Basic ${ann.token}`, `Token ${ann.token}`, 'Bearer', 'Bearer ', `Bearer ${ann.token} x`];
    for (const header of [...wrong, `Bearer, ${ann.token}`, `Bearer "${ann.token}"`]) {
      expect([header.slice(0, 20), ...(await me(header))]).toEqual([header.slice(0, 20), 401, 'ACCESS_TOKEN_INVALID']);
    }
    const inQuery = await harness.get(`/auth/me?access_token=${ann.token}`);
    expect(inQuery.status).toBe(401);
    const challenge = (await harness.get('/auth/me')).headers.get('www-authenticate');
    expect(challenge).toBe('Bearer');
  });

  it(row('Authentication', 2, 'tampered tokens'), async () => {
    const [jwk] = await keys();
    for (const [what, token] of Object.entries(tampered(ann.token, bob.id, { ...jwk }))) {
      for (const path of ['/auth/me', '/keys', '/usage', '/load-balancing/groups']) {
        expect([what, ...refusalOf(await harness.get(path, token))]).toEqual([what, 401, 'ACCESS_TOKEN_INVALID']);
      }
    }
    // API keys and refresh tokens are not access tokens.
    const key = await harness.newKey(ann);
    const refused = await harness.get('/auth/me', key.token);
    expect(refusalOf(refused)).toEqual([401, 'ACCESS_TOKEN_IS_API_KEY']);
    const text = 'this is an API key: the platform API needs the access token of POST /auth/login';
    expect(refused.body).toMatchObject({ error: text });
    const refreshToken = ann.cookie.slice('refresh_token='.length);
    expect(refusalOf(await harness.get('/auth/me', refreshToken))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    expect((await harness.get('/auth/me', ann.token)).status).toBe(200);
  });

  it(row('Authentication', 3), async () => {
    const answer = await harness.ask('POST', '/auth/refresh', { cookie: (await harness.enter(ann.email)).cookie });
    const { access_token } = answer.body as AccessToken;
    const { claims } = readJwt(access_token);
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(15 * 60);
    expect((await harness.get('/auth/me', access_token)).status).toBe(200);
  });

  it(row('Authentication', 4), async () => {
    const { cookie } = await harness.enter(ann.email);
    const answer = await harness.ask('POST', '/auth/logout', { cookie });
    expect(answer.headers.get('set-cookie')).toMatch(
      /^refresh_token=; Max-Age=0; Path=\/auth; HttpOnly; SameSite=Lax$/,
    );
  });

  it(row('Authentication', 5), async () => {
    const { email, verifyToken } = await harness.register();
    expect((await harness.login(email)).status).toBe(403);
    await harness.get(`/auth/verify-email/${verifyToken}`);
    expect((await harness.login(email)).status).toBe(200);
    const external = await harness.external();
    await harness.post('/auth/forgot-password', { email: external });
    expect(refusalOf(await harness.login(external))).toEqual([403, 'ACCOUNT_EXTERNAL']);
    expect(harness.rawMails(external)).toEqual([]);
  });

  it(row('Authentication', 9), async () => {
    const { header, claims } = readJwt(ann.token);
    expect(Object.keys(claims).sort()).toEqual(['aud', 'epoch', 'exp', 'iat', 'iss', 'jti', 'sub']);
    expect(header).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: expect.any(String) });
  });
});

describe('Contract', () => {
  it(row('Contract', 5), async () => {
    const { header, claims } = readJwt(ann.token);
    const jwk = (await keys()).find(({ kid }) => kid === header['kid']);
    expect(jwk).toMatchObject({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' });
    expect(jwk).not.toHaveProperty('d');
    expect(isSignedBy(ann.token, { ...jwk })).toBe(true);
    expect(claims).toMatchObject({ sub: ann.id, iss: 'http://localhost:8080' });
    const again = readJwt((await harness.enter(ann.email)).token);
    expect(again.claims['jti']).not.toBe(claims['jti']);
  });

  it(row('Contract', 6, 'suspension'), async () => {
    const cyd = await harness.person();
    expect((await harness.get('/keys', cyd.token)).status).toBe(200);
    await harness.suspend(cyd.email);
    const suspendedAt = performance.now();
    await eventually(async () => expect((await harness.get('/keys', cyd.token)).status).toBe(403), {
      timeoutMs: PATIENCE_MS,
    });
    // The suspension takes two seconds on a quiet machine, whereas an access token lasts fifteen minutes.
    expect(performance.now() - suspendedAt).toBeLessThan(15_000);
    for (const [method, path] of USER_SCOPED) {
      const answer = await harness.ask(method, path, { token: cyd.token });
      expect([method, path, ...refusalOf(answer)]).toEqual([method, path, 403, 'ACCOUNT_SUSPENDED']);
    }
  });

  it(row('Contract', 6, 'reset'), async () => {
    const dan = await harness.person();
    await harness.post('/auth/forgot-password', { email: dan.email });
    const token = await harness.mailedToken(dan.email);
    expect((await harness.post('/auth/reset-password', { token, password: 'a new password' })).status).toBe(200);
    // A change in this process takes effect at once.
    expect(refusalOf(await harness.get('/auth/me', dan.token))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    const refreshed = await harness.ask('POST', '/auth/refresh', { cookie: dan.cookie });
    expect(refusalOf(refreshed)).toEqual([401, 'REFRESH_INVALID']);
  });
});
