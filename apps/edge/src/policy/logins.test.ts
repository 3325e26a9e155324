// Logins against a provider that behaves correctly unless a test changes its behavior. Every attack to prevent has a test named after the
// attack.

import { Secret } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Browser, driverOf, EDGE_URL, loginAt, operatorsAt, policyWith, SHOP_URL } from './driver.fixture.ts';
import { LOGIN_COOKIE_MAX_BYTES } from './limits.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import type { PolicyDriver, PolicyDriverOptions } from './policy-driver.ts';
import { PROVIDER_CALL_MS } from './provider-calls.ts';
import { PROVIDER_RETRY_MS } from './provider-documents.ts';

let clock: FakeClock;
let provider: OddProvider;
const drivers: PolicyDriver[] = [];

const driver = (more: Partial<PolicyDriverOptions> = {}): PolicyDriver => {
  drivers.push(driverOf(clock, more));
  return drivers.at(-1) as PolicyDriver;
};

beforeEach(async () => {
  clock = new FakeClock();
  provider = await OddProvider.start({ now: () => clock.now() });
});

afterEach(async () => {
  for (const one of drivers.splice(0)) one.close();
  await provider.stop();
});

const browser = (more: Partial<PolicyDriverOptions> = {}): Browser => new Browser(driver(more), loginAt(provider));
const ANN = { sub: 'u1', email: 'ann@example.com', emailVerified: true };
const failedWith = (code: string): object => ({ kind: 'failed', fault: { code } });
const STATE = failedWith('POLICY_LOGIN_STATE');
const AWAY = failedWith('POLICY_PROVIDER_AWAY');

describe('a login', () => {
  it('redirects to the provider and back to the requested path, and its session is recognized', async () => {
    const ann = browser();
    const location = new URL(await ann.locationOf('/deep?x=1'));
    expect(location.origin + location.pathname).toBe(`${provider.issuer}/authorize`);
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      from: 'edge',
      client_id: 'edge',
      response_type: 'code',
      scope: 'openid email',
      redirect_uri: `${SHOP_URL}/.tunnel/callback`,
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[0-9a-f]{8}\.[\w-]{22}$/),
      nonce: expect.stringMatching(/^[\w-]{32}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(ann.setCookies[0]).toMatch(
      /^__Host-tunnel_login_[0-9a-f]{8}=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
    const { query } = provider.signIn(location.href);
    expect(await ann.finish(query)).toMatchObject({ kind: 'login-finished', returnPath: '/deep?x=1' });
    expect(ann.pending.size).toBe(0);
    expect(ann.setCookies[1]).toMatch(
      /^__Host-tunnel_login=[\w-]+; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(await ann.session()).toMatchObject({ ...ANN, expiresAt: Math.floor(clock.now() / 1000) + 3600 });
  });

  it('in two tabs at once completes in each tab', async () => {
    const ann = browser();
    const first = await ann.locationOf('/one');
    const second = await ann.locationOf('/two');
    expect(ann.pending.size).toBe(2);
    expect(await ann.finish(provider.signIn(second).query)).toMatchObject({ returnPath: '/two' });
    expect(await ann.finish(provider.signIn(first).query)).toMatchObject({ returnPath: '/one' });
  });

  it('keeps only the claims named in rules, and gets missing claims from the user info', async () => {
    const login = loginAt(provider);
    const policy = policyWith(login, { groups: ['staff'] });
    const ann = new Browser(driver(), login, { policy });
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    provider.userInfo = {
      sub: 'u1',
      groups: ['staff', 'board'],
      phone: '1',
      email: 'other@example.com',
      email_verified: true,
    };
    await ann.finish(provider.signIn(await ann.locationOf()).query);
    // The email address comes from the token, not from the user info.
    expect(await ann.session()).toMatchObject({ ...ANN, claims: { groups: ['staff', 'board'] } });
  });

  it('fits into a cookie, even for a visitor in 1000 groups', async () => {
    const login = loginAt(provider);
    const ann = new Browser(driver(), login, { policy: policyWith(login, { groups: ['staff'] }) });
    provider.claims = { groups: ['staff', ...Array.from({ length: 1000 }, (_, at) => `group-${at}`)] };
    await ann.finish(provider.signIn(await ann.locationOf()).query);
    for (const line of ann.setCookies) expect(line.length).toBeLessThanOrEqual(LOGIN_COOKIE_MAX_BYTES + 100);
    expect(await ann.session()).toMatchObject({ claims: { groups: ['staff'] } });
  });

  it.each([{}, { iss: 'the issuer', aud: 'edge' }])('accepts signed user info with %j', async (more) => {
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    provider.claims = { email: undefined };
    const iss = 'iss' in more ? { ...more, iss: provider.issuer } : {};
    provider.userInfo = { sub: 'u1', email: 'ann@example.com', email_verified: true, ...iss };
    provider.userInfoSigning = 'good';
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf()).query)).toMatchObject({ kind: 'login-finished' });
    expect(await ann.session()).toMatchObject(ANN);
  });

  it('works for a public client without a secret', async () => {
    const { session_secs, trusted_origins } = loginAt(provider);
    const login = { issuer: provider.issuer, client_id: 'edge', scopes: [], session_secs, trusted_origins };
    const ann = new Browser(driver(), login);
    const location = await ann.locationOf();
    expect(new URL(location).searchParams.get('scope')).toBe('openid');
    expect(await ann.finish(provider.signIn(location).query)).toMatchObject({ kind: 'login-finished' });
  });

  it('started over http continues at the tunnel’s https address', async () => {
    const ann = new Browser(driver(), loginAt(provider), { scheme: 'http' });
    expect(await ann.begin('/x')).toEqual({ kind: 'login-begun', location: `${SHOP_URL}/x`, setCookies: [] });
  });
});

describe('the operator’s provider', () => {
  const LOGIN = { provider: 'company', session_secs: 3600, trusted_origins: [] };

  it('gets one callback URL for all tunnels, which forwards to the tunnel of the login', async () => {
    const here = driver({ providers: operatorsAt(provider), allowPrivate: false });
    expect(here.loginProviders).toEqual(['company']);
    const ann = new Browser(here, LOGIN);
    const { redirectUri, query } = provider.signIn(await ann.locationOf());
    expect(redirectUri).toBe(`${EDGE_URL}/.tunnel/callback`);
    // The tunnel’s callback refuses a query meant for the edge’s callback.
    expect(await ann.finish(query)).toMatchObject(STATE);
    const answer = here.callbackRelay.answer(`/.tunnel/callback${query}`);
    const [, location = ''] =
      ('response' in answer && answer.response.headers.find(([name]) => name === 'location')) || [];
    expect(location).toMatch(/^https:\/\/shop\.example\.com:8443\/\.tunnel\/callback\?/);
    expect(await ann.finish(new URL(location).search)).toMatchObject({ kind: 'login-finished' });
    expect(await ann.session()).toMatchObject(ANN);
  });

  it('signs no visitor in once it is no longer configured', async () => {
    const ann = new Browser(driver(), LOGIN);
    expect(await ann.begin()).toMatchObject(AWAY);
    expect(await ann.finish('?state=a.b&code=c')).toMatchObject(AWAY);
    expect(await ann.session(['x'])).toBeNull();
  });
});

describe('a login is refused for', () => {
  it('the state of another browser', async () => {
    const shared = driver();
    const ann = new Browser(shared, loginAt(provider));
    const eve = new Browser(shared, loginAt(provider));
    const { query } = provider.signIn(await eve.locationOf());
    await ann.begin();
    expect(await ann.finish(query)).toMatchObject(STATE);
    expect(await ann.finish(query, new Map())).toMatchObject(STATE);
  });

  it('the cookie of another login under the name of the current login', async () => {
    const ann = browser();
    const { query } = provider.signIn(await ann.locationOf());
    const [id = ''] = ann.pending.keys();
    await ann.begin();
    const [, other = ''] = [...ann.pending].find(([name]) => name !== id) ?? [];
    expect(await ann.finish(query, new Map([[id, other]]))).toMatchObject(STATE);
  });

  it('a used state, even with its cookie', async () => {
    const ann = browser();
    const { query } = provider.signIn(await ann.locationOf());
    const kept = new Map(ann.pending);
    expect(await ann.finish(query, kept)).toMatchObject({ kind: 'login-finished' });
    expect(await ann.finish(query)).toMatchObject(STATE);
    expect(await ann.finish(query, kept)).toMatchObject(STATE);
    expect(provider.asked.token).toBe(1);
  });

  it('a used code', async () => {
    const ann = browser();
    const eve = browser();
    const { query } = provider.signIn(await ann.locationOf());
    await ann.finish(query);
    const mine = new URLSearchParams(provider.signIn(await eve.locationOf()).query);
    mine.set('code', new URLSearchParams(query).get('code') ?? '');
    expect(await eve.finish(`?${mine.toString()}`)).toMatchObject(STATE);
  });

  it('an expired state', async () => {
    const ann = browser();
    const { query } = provider.signIn(await ann.locationOf());
    await clock.advance(600_000);
    expect(await ann.finish(query)).toMatchObject(STATE);
    expect(provider.asked.token).toBe(0);
  });

  it('a state of another tunnel, or of the same name under another owner', async () => {
    const shared = driver();
    for (const subject of [{ host: 'other.example.com' }, { owner: 'account 2' }]) {
      const ann = new Browser(shared, loginAt(provider));
      const { query } = provider.signIn(await ann.locationOf());
      const there = new Browser(shared, loginAt(provider), subject);
      expect(await there.finish(query, ann.pending)).toMatchObject(STATE);
    }
  });

  it('a state sealed with another edge’s secret', async () => {
    const ann = browser();
    const { query } = provider.signIn(await ann.locationOf());
    const elsewhere = browser({ loginSecrets: [new Secret('z'.repeat(43))] });
    expect(await elsewhere.finish(query, ann.pending)).toMatchObject(STATE);
  });

  it('the code of another login in the same browser, because PKCE and nonce differ', async () => {
    const ann = browser();
    const first = provider.signIn(await ann.locationOf());
    const second = provider.signIn(await ann.locationOf());
    const swapped = new URLSearchParams(first.query);
    swapped.set('code', new URLSearchParams(second.query).get('code') ?? '');
    expect(await ann.finish(`?${swapped.toString()}`)).toMatchObject(STATE);
    expect(ann.logins).toEqual([]);
  });

  it('a response in the name of another issuer (mix-up attack)', async () => {
    const ann = browser();
    const { query } = provider.signIn(await ann.locationOf());
    expect(await ann.finish(`${query}&iss=https%3A%2F%2Fevil.example`)).toMatchObject(AWAY);
    expect(provider.asked.token).toBe(0);
  });

  it.each([
    ['another nonce', { nonce: 'n' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'other' }],
    ['two audiences and no party', { aud: ['edge', 'other'] }],
    ['another party', { azp: 'other' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['no subject', { sub: undefined }],
    ['no expiry', { exp: undefined }],
    ['no issue time', { iat: undefined }],
    ['an expiry in the past', { exp: 1 }],
  ])('an ID token with %s', async (_what, claims) => {
    provider.claims = claims;
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf()).query)).toMatchObject(AWAY);
    expect(ann.logins).toEqual([]);
  });

  it.each(['none', 'hmac', 'unpublished-key'] as const)('an ID token with the signature %s', async (signing) => {
    provider.signing = signing;
    // The token is refused even if the provider’s metadata lists the algorithm.
    provider.metadata = { id_token_signing_alg_values_supported: ['ES256', 'none', 'HS256'] };
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf()).query)).toMatchObject(AWAY);
    expect(ann.logins).toEqual([]);
  });

  it('user info of another subject', async () => {
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    provider.claims = { email: undefined };
    provider.userInfo = { sub: 'u2', email: 'boss@example.com', email_verified: true };
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf()).query)).toMatchObject(AWAY);
  });

  it.each([
    ['of another person', 'good', { sub: 'u2' }],
    ['for another client', 'good', { aud: 'other' }],
    ['of another issuer', 'good', { iss: 'https://evil.example' }],
    ['that has expired', 'good', { exp: 1 }],
    ['signed with an unpublished key', 'unpublished-key', {}],
    ['without a signature', 'none', {}],
  ] as const)('signed user info %s', async (_what, signing, claims) => {
    provider.metadata = {
      userinfo_endpoint: `${provider.issuer}/userinfo`,
      userinfo_signing_alg_values_supported: ['none'],
    };
    provider.claims = { email: undefined };
    provider.userInfo = { sub: 'u1', email: 'boss@example.com', email_verified: true, ...claims };
    provider.userInfoSigning = signing;
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf()).query)).toMatchObject(AWAY);
    expect(ann.logins).toEqual([]);
  });

  it.each(['late', 'huge', 'redirect', 'broken', 'not-json'] as const)(
    'provider responses of the kind %s',
    async (odd) => {
      provider.odd.metadata = odd;
      const ann = browser();
      const begun = ann.begin();
      if (odd === 'late') {
        await eventually(() => expect(provider.asked.metadata).toBe(1));
        await clock.advance(PROVIDER_CALL_MS);
      }
      expect(await begun).toMatchObject(AWAY);
      delete provider.odd.metadata;
      await clock.advance(PROVIDER_RETRY_MS);
      const { query } = provider.signIn(await ann.locationOf());
      provider.odd.token = odd;
      const finished = ann.finish(query);
      if (odd === 'late') {
        await eventually(() => expect(provider.asked.token).toBe(1));
        await clock.advance(PROVIDER_CALL_MS);
      }
      const event = await finished;
      expect(event).toMatchObject(AWAY);
      // The error names the kind of failure, but never contains the provider’s response.
      expect(JSON.stringify(event)).not.toContain('s3cret');
      expect(ann.logins).toEqual([]);
    },
  );
});

describe('an unverified email address', () => {
  it.each([{ email_verified: false }, { email_verified: 'true' }, { email_verified: undefined }])(
    'is not treated as verified: %j',
    async (claims) => {
      provider.claims = claims;
      const ann = browser();
      await ann.finish(provider.signIn(await ann.locationOf()).query);
      expect(await ann.session()).toMatchObject({ emailVerified: false });
    },
  );

  it('stays unverified if the user info verifies another email address', async () => {
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    provider.claims = { email: 'boss@example.com', email_verified: undefined, groups: undefined };
    provider.userInfo = { sub: 'u1', email: 'ann@example.com', email_verified: true, groups: ['staff'] };
    const login = loginAt(provider);
    const ann = new Browser(driver(), login, { policy: policyWith(login, { groups: ['staff'] }) });
    await ann.finish(provider.signIn(await ann.locationOf()).query);
    expect(await ann.session()).toMatchObject({ email: 'boss@example.com', emailVerified: false });
  });
});

describe('the path after a login', () => {
  it.each([
    ['//evil.example', '/evil.example'],
    ['/\\evil.example', '/evil.example'],
    ['\\\\evil.example', '/'],
    ['https://evil.example', '/'],
    ['/\r\nSet-Cookie:x=y', '/'],
    ['/%0d%0aSet-Cookie:x=y', '/%0d%0aSet-Cookie:x=y'],
  ])('never leads to another host and injects no header: %j', async (path, returnPath) => {
    const ann = browser();
    expect(await ann.finish(provider.signIn(await ann.locationOf(path)).query)).toMatchObject({ returnPath });
  });
});

describe('a path too long for a cookie', () => {
  it('is replaced by the start page after the login', async () => {
    const ann = browser();
    const location = await ann.locationOf(`/${'x'.repeat(5000)}`);
    expect(await ann.finish(provider.signIn(location).query)).toMatchObject({ returnPath: '/' });
  });
});

describe('a session', () => {
  const loggedIn = async (more: Partial<PolicyDriverOptions> = {}): Promise<Browser> => {
    const ann = browser(more);
    await ann.finish(provider.signIn(await ann.locationOf()).query);
    return ann;
  };

  it('is rejected at another host, under another owner or for another provider', async () => {
    const ann = await loggedIn();
    expect(await ann.session(ann.logins, { host: 'other.example.com' })).toBeNull();
    expect(await ann.session(ann.logins, { served: {}, owner: 'account 2' })).toBeNull();
    const login = { ...loginAt(provider), client_id: 'other' };
    expect(await new Browser(drivers[0] as PolicyDriver, login).session(ann.logins)).toBeNull();
  });

  it('ends at its expiry, even if it was recognized just before', async () => {
    const ann = await loggedIn();
    await clock.advance(3_599_000);
    expect(await ann.session()).toMatchObject(ANN);
    await clock.advance(1000);
    expect(await ann.session()).toBeNull();
  });

  it('survives a restart and a rotation of secrets, but not the removal of its secret', async () => {
    const old = new Secret('o'.repeat(43));
    const next = new Secret('n'.repeat(43));
    const ann = await loggedIn({ loginSecrets: [old] });
    expect(await browser({ loginSecrets: [old] }).session(ann.logins)).toMatchObject(ANN);
    expect(await browser({ loginSecrets: [next, old] }).session(ann.logins)).toMatchObject(ANN);
    expect(await browser({ loginSecrets: [next] }).session(ann.logins)).toBeNull();
  });

  it('is found next to invalid cookies set by a sibling domain', async () => {
    const ann = await loggedIn();
    expect(await ann.session(['x', '', 'A'.repeat(4000), ...ann.logins])).toMatchObject(ANN);
    expect(await ann.session(['x', 'y'])).toBeNull();
  });

  it('is decrypted once, not for every request', async () => {
    const ann = await loggedIn();
    expect(await ann.session()).toBe(await ann.session());
  });
});
