import { Buffer } from 'node:buffer';
import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { applyRequestChanges } from '../edits/apply-request-changes.ts';
import {
  type Asked,
  authOf,
  DIGESTS,
  type Driven,
  drive,
  headerOf,
  headOf,
  LOGIN,
  type Meet,
  NAVIGATION,
  NOW,
  policyOf,
  requestOf,
  sessionOf,
  verdictOf,
} from '../policy.fixture.ts';
import type { Auth, LoginAuth, Rule } from '../policy.ts';
import type { HeaderPair, LoggedIn } from '../policy-step.ts';
import { TokenTable } from './authentication.ts';

const TOKEN = 'token-of-ci-0123456789';
const TOKENS: Partial<Auth> = { tokens: [{ name: 'ci', sha256: DIGESTS.sha256Hex(TOKEN) }] };
const BASIC: Partial<Auth> = { basic: { realm: 'tunnel', users: { anna: '$scrypt$1', bjørn: '$scrypt$2' } } };
const JWT: Partial<Auth> = { jwt: { issuer: 'https://i', audience: ['api'] } };
const ANYONE: Partial<Auth> = { login: { anyone: true } };

const basic = (text: string): HeaderPair => ['Authorization', `Basic ${Buffer.from(text).toString('base64')}`];
const COOKIE: HeaderPair = ['Cookie', 'a=1; __Host-tunnel_login=sealed'];

const rightIf =
  (isRight: boolean): Meet =>
  () => ({ kind: 'password-checked', isRight });
const opens =
  (session: LoggedIn | null): Meet =>
  (effect) =>
    effect.kind === 'begin-login'
      ? { kind: 'login-begun', location: 'https://login', setCookies: ['__Host-tunnel_login_0a1b2c3d=x'] }
      : { kind: 'cookie-opened', session };

const ask = (auth: Partial<Auth>, asked: Asked, meet?: Meet, more: readonly Rule[] = []): Driven =>
  drive(policyOf([authOf(auth), ...more], auth.login === undefined ? null : LOGIN), requestOf(asked), meet);

/** Returns the headers for the service, without Host. */
const seen = (driven: Driven, asked: Asked): string[] => {
  const { outcome } = driven;
  if (outcome.kind !== 'pass') throw new Error(verdictOf(driven));
  const head = headOf(requestOf(asked));
  const { headers } = outcome.changes === null ? head : applyRequestChanges(head, outcome.changes);
  return headers.filter(({ role }) => role !== 'host').map(({ lower, value }) => `${lower}: ${value}`);
};

it('an unauthenticated request gets 401 with a challenge for every configured method', () => {
  const { outcome } = ask({ ...BASIC, ...TOKENS, ...JWT }, {});
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'fault') throw new Error('no challenge');
  expect(outcome.answer).toMatchObject({ status: 401, fault: { code: 'POLICY_UNAUTHENTICATED' } });
  expect(headerOf(outcome.answer.headers, 'www-authenticate')).toBe(
    'Basic realm="tunnel", charset="UTF-8", Bearer realm="tunnel", Tunnel-Token header="x-tunnel-token"',
  );
});

// ---- passwords ----

it('a correct password is removed from the request, and the service gets the user name', () => {
  const asked = { headers: [basic('anna:pass:word'), ['x-a', '1']] as const };
  const driven = ask(BASIC, asked, rightIf(true));
  expect(driven.effects).toEqual([
    { kind: 'check-password', auth: BASIC.basic, user: 'anna', password: 'pass:word', hash: '$scrypt$1' },
  ]);
  expect(seen(driven, asked)).toEqual(['x-a: 1', 'x-tunnel-user: anna', 'x-tunnel-auth: basic']);
  expect(verdictOf(ask(BASIC, asked, rightIf(false)))).toBe('401 POLICY_UNAUTHENTICATED');
});

it('the password of an unknown user is checked like that of a known user', () => {
  for (const user of ['nobody', 'constructor', '__proto__']) {
    expect(ask(BASIC, { headers: [basic(`${user}:x`)] }, rightIf(false)).effects).toMatchObject([{ user, hash: null }]);
  }
});

it('user names and passwords are decoded as UTF-8', () => {
  const asked = { headers: [basic('bjørn:lösen')] };
  const driven = ask(BASIC, asked, rightIf(true));
  expect(driven.effects).toMatchObject([{ user: 'bjørn', password: 'lösen', hash: '$scrypt$2' }]);
  expect(seen(driven, asked)).toContain('x-tunnel-user: bj\xc3\xb8rn');
});

it.each(['Basic', 'Basic !!!', 'Basic YQ', 'Digest x', 'Basicx YTpi', ''])(
  '%s is not a password: the request gets 401 without a password check',
  (value) => {
    const driven = ask(BASIC, { headers: [['Authorization', value]] });
    expect([verdictOf(driven), driven.effects.length]).toEqual(['401 POLICY_UNAUTHENTICATED', 0]);
  },
);

const OPEN: Rule = { match: { path: ['/open/**'] }, allow: true };
const BEFORE_PASSWORD = [
  ['a token', { headers: [['x-tunnel-token', TOKEN]] }, 'x-tunnel-user: ci'],
  ['a login', { headers: [COOKIE] }, 'x-tunnel-user: anna@example.com'],
  ['an allow rule', { path: '/open/x', headers: [] }, ''],
] as const;

it.each(BEFORE_PASSWORD)(
  'a password for the edge never reaches the service if %s let the request in',
  (_what, asked, line) => {
    const policy = policyOf([OPEN, authOf({ ...BASIC, ...TOKENS, ...ANYONE })], LOGIN);
    const sees = (...fields: readonly HeaderPair[]): string[] => {
      const whole = { ...asked, headers: [...asked.headers, ...fields] };
      return seen(drive(policy, requestOf(whole), opens(sessionOf())), whole);
    };
    const guessed: readonly HeaderPair[] = [
      basic('anna:right'),
      ['AUTHORIZATION', `bAsIc   ${basic('bjørn:x')[1].slice(6)} `],
      ['authorization', 'Basic YW5uYTpyaWdo*dA=='],
    ];
    for (const field of guessed) {
      expect(sees(field).filter((one) => one.startsWith('authorization'))).toEqual([]);
      expect(sees(['authorization', 'Bearer own'], field).join()).not.toMatch(/basic/i);
      if (line !== '') expect(sees(field)).toContain(line);
    }
    // Credentials of a user unknown to the edge belong to the service.
    expect(sees(basic('carl:own'))).toContain(`authorization: ${basic('carl:own')[1]}`);
  },
);

it('a password that cannot be checked right now gets the error of the check', () => {
  const fault = new Fault('POLICY_RATE_LIMITED');
  const driven = ask(BASIC, { headers: [basic('anna:x')] }, () => ({ kind: 'failed', fault, retryAfterSecs: 30 }));
  expect(driven.outcome).toMatchObject({ answer: { status: 429, retryAfterSecs: 30 } });
});

// ---- tokens ----

it('an access token is compared by digest, and never reaches the service', () => {
  const asked = {
    headers: [
      ['X-Tunnel-Token', TOKEN],
      ['x_tunnel_token', TOKEN],
      ['authorization', 'Basic b3du'],
    ] as const,
  };
  const driven = ask({ ...TOKENS, ...BASIC }, asked);
  expect(seen(driven, asked)).toEqual(['authorization: Basic b3du', 'x-tunnel-user: ci', 'x-tunnel-auth: token']);
  for (const value of ['', `${TOKEN}x`, 'ci', DIGESTS.sha256Hex(TOKEN)]) {
    expect(verdictOf(ask(TOKENS, { headers: [['x-tunnel-token', value]] }))).toBe('401 POLICY_UNAUTHENTICATED');
  }
});

it('a valid access token is digested only once', () => {
  let count = 0;
  const digests = { ...DIGESTS, sha256Hex: (text: string) => (count++, DIGESTS.sha256Hex(text)) };
  const table = new TokenTable(TOKENS.tokens ?? [], digests);
  expect([
    table.identityOf(TOKEN)?.user ?? null,
    table.identityOf(TOKEN)?.user ?? null,
    table.identityOf('x')?.user ?? null,
    table.identityOf('x')?.user ?? null,
  ]).toEqual(['ci', 'ci', null, null]);
  expect(count).toBe(3);
});

it('the token header is also removed if another rule let the request through', () => {
  const policy = policyOf([{ match: { path: ['/open'] }, allow: true }, authOf(TOKENS)]);
  const asked = {
    path: '/open',
    headers: [
      ['x-tunnel-token', TOKEN],
      ['X_Tunnel-User', 'root'],
      ['x-a', '1'],
    ] as const,
  };
  expect(seen(drive(policy, requestOf(asked)), asked)).toEqual(['x-a: 1']);
});

// ---- JWT ----

it('a JWT is verified, and passed on to the service', () => {
  const asked = { headers: [['authorization', 'bearer a.b.c']] as const };
  const driven = ask(JWT, asked, () => ({ kind: 'jwt-verified', claims: { sub: 'robot' } }));
  expect(driven.effects).toEqual([{ kind: 'verify-jwt', auth: JWT.jwt, token: 'a.b.c' }]);
  expect(seen(driven, asked)).toEqual(['authorization: bearer a.b.c', 'x-tunnel-user: robot', 'x-tunnel-auth: jwt']);
  expect(verdictOf(ask(JWT, asked, () => ({ kind: 'jwt-verified', claims: null })))).toBe('401 POLICY_UNAUTHENTICATED');
});

it('two Authorization headers authenticate nothing, since the service could read the unverified header', () => {
  const pairs: HeaderPair[] = [
    ['authorization', 'Bearer good'],
    ['Authorization', 'Bearer made-up'],
  ];
  for (const headers of [pairs, [basic('anna:x'), ...pairs.slice(1)]]) {
    const driven = ask({ ...JWT, ...BASIC }, { headers });
    expect([verdictOf(driven), driven.effects]).toEqual(['401 POLICY_UNAUTHENTICATED', []]);
  }
});

it.each([
  [{ sub: 's', scope: 'read write', role: ['a', 'b'] }, true],
  [{ sub: 's', scope: 'reads', role: ['a'] }, false],
  [{ sub: 's', scope: 'write' }, false],
  [{ sub: 's', scope: ['write'], role: 'b' }, true],
  [{ sub: 's' }, false],
])('a JWT must match every claim of the rule: %j', (claims, fits) => {
  const jwt = { issuer: 'https://i', audience: ['api'], claims: { scope: ['write', 'admin'], role: ['b'] } };
  const driven = ask({ jwt }, { headers: [['authorization', 'Bearer x']] }, () => ({ kind: 'jwt-verified', claims }));
  expect(verdictOf(driven)).toBe(fits ? 'pass' : '401 POLICY_UNAUTHENTICATED');
});

// ---- logins ----

const person = (login: LoginAuth, session: Partial<LoggedIn>): string =>
  verdictOf(ask({ login }, { headers: [COOKIE] }, opens(sessionOf(session))));

it('a listed person is let in; the login cookie stays at the edge, and the response is private', () => {
  const asked = { headers: [COOKIE] };
  const driven = ask({ login: { emails: ['Anna@Example.com'] } }, asked, opens(sessionOf()));
  expect(driven.effects).toEqual([{ kind: 'open-cookie', login: LOGIN, sealed: ['sealed'] }]);
  expect(seen(driven, asked)).toEqual(['cookie: a=1', 'x-tunnel-user: anna@example.com', 'x-tunnel-auth: login']);
  expect(driven.outcome.edits).toEqual([{ kind: 'guard-cookies' }, { kind: 'private' }]);
});

const REFUSED = '403 POLICY_LOGIN_REFUSED';

it.each<[LoginAuth, Partial<LoggedIn>, string]>([
  [{ domains: ['example.com'] }, {}, 'pass'],
  [{ domains: ['example.com'] }, { email: 'a@evil-example.com' }, REFUSED],
  [{ domains: ['example.com'] }, { email: 'a@example.com@evil.org' }, REFUSED],
  [{ domains: ['evil.org'] }, { email: 'a@example.com@evil.org' }, 'pass'],
  [{ domains: ['example.com'] }, { email: 'a@sub.example.com' }, REFUSED],
  [{ domains: ['example.com'] }, { email: 'example.com' }, REFUSED],
  [{ domains: ['example.com'] }, { email: '@example.com' }, REFUSED],
  [{ domains: ['example.com'] }, { emailVerified: false }, REFUSED],
  [{ emails: ['anna@example.com'] }, { emailVerified: false }, REFUSED],
  [{ emails: ['anna@example.com'] }, { email: null }, REFUSED],
  [{ emails: ['kim@example.com'] }, { email: '\u212aim@example.com' }, REFUSED],
  [{ anyone: true }, { email: null }, 'pass'],
  [{ claims: { role: ['dev'] } }, { claims: { role: ['ops', 'dev'] } }, 'pass'],
  [{ claims: { role: ['dev'] } }, {}, REFUSED],
  [{ claims: { constructor: ['x'] } }, {}, REFUSED],
  [{ claims: {}, emails: [] }, {}, REFUSED],
  [{ emails: ['bob@example.com'], claims: { role: ['dev'] } }, { claims: { role: ['dev'] } }, 'pass'],
])('the login rule %j with the session %j: %s', (login, session, wanted) => {
  expect(person(login, session)).toBe(wanted);
});

it('a visitor with an unverified e-mail address is identified by sub', () => {
  const driven = ask(ANYONE, { headers: [COOKIE] }, opens(sessionOf({ emailVerified: false })));
  expect(driven.outcome.identity).toEqual({ user: 'sub-1', method: 'login' });
});

it('a browser navigation without a login is redirected to the provider, every other request gets 401', () => {
  const begins = (asked: Asked): string => verdictOf(ask(ANYONE, asked, opens(null)));
  expect(begins({ headers: NAVIGATION })).toBe('302');
  expect(begins({ headers: [['accept', 'text/html;q=0.9']], method: 'HEAD' })).toBe('302');
  expect(begins({ headers: [COOKIE, ...NAVIGATION] })).toBe('302');
  for (const asked of [
    {},
    { headers: NAVIGATION, method: 'POST' },
    { headers: NAVIGATION, isUpgrade: true },
    { headers: [['accept', 'application/json']] },
    {
      headers: [
        ['accept', 'text/html'],
        ['sec-fetch-mode', 'cors'],
      ],
    },
    { headers: [...NAVIGATION, ['sec-purpose', 'prefetch;prerender']] },
  ] as Asked[]) {
    expect(begins(asked)).toBe('401 POLICY_UNAUTHENTICATED');
  }
});

it('a login keeps the path to return to, and clears the oldest of many pending logins', () => {
  const pending = ['1', '2', '3', '4', '5'].map((id) => `__Host-tunnel_login_0000000${id}=x`).join('; ');
  const driven = ask(ANYONE, { path: '//evil/deep?x=1', headers: [...NAVIGATION, ['cookie', pending]] }, opens(null));
  expect(driven.effects).toEqual([{ kind: 'begin-login', login: LOGIN, returnPath: '/evil/deep?x=1' }]);
  const { outcome } = driven;
  if (outcome.kind !== 'answer' || outcome.answer.kind !== 'own') throw new Error('no redirect');
  const { headers } = outcome.answer.response;
  expect(headerOf(headers, 'cache-control')).toBe('no-store');
  const set = headers.filter(([name]) => name === 'set-cookie').map(([, value]) => value.split(';')[0]);
  expect(set).toEqual([
    '__Host-tunnel_login_00000001=',
    '__Host-tunnel_login_00000002=',
    '__Host-tunnel_login_0a1b2c3d=x',
  ]);
});

it('a session that has expired, or cannot be decrypted, counts as not signed in', () => {
  for (const session of [null, sessionOf({ expiresAt: NOW / 1000 })]) {
    expect(verdictOf(ask(ANYONE, { headers: [COOKIE] }, opens(session)))).toBe('401 POLICY_UNAUTHENTICATED');
  }
});

it('authentication methods are alternatives: a visitor who is not on the login list may use a password', () => {
  const auth = { ...BASIC, login: { emails: ['x@y.z'] } };
  const meet: Meet = (effect) => (effect.kind === 'open-cookie' ? opens(sessionOf())(effect) : rightIf(true)(effect));
  const driven = ask(auth, { headers: [COOKIE, basic('anna:x')] }, meet);
  expect(driven.outcome).toMatchObject({ kind: 'pass', identity: { method: 'basic' } });
});

it('two auth rules must both let the visitor in, and the login cookie is opened once', () => {
  const admins: Rule = { match: { path: ['/admin/**'] }, ...authOf({ login: { emails: ['boss@example.com'] } }) };
  const at = (path: string): Driven => ask(ANYONE, { path, headers: [COOKIE] }, opens(sessionOf()), [admins]);
  expect([verdictOf(at('/')), verdictOf(at('/admin')), at('/admin').effects.length]).toEqual(['pass', REFUSED, 1]);
});

// ---- other sites ----

const hidden = (site: string): readonly HeaderPair[] => [
  ['origin', 'null'],
  ['sec-fetch-site', site],
];

const ORIGINS: readonly (readonly [Asked, string])[] = [
  [{ method: 'POST' }, 'pass'],
  [{ method: 'POST', headers: [['origin', 'https://shop.example.com']] }, 'pass'],
  [{ method: 'POST', headers: [['origin', 'https://SHOP.example.com:443']] }, 'pass'],
  [{ method: 'POST', headers: [['origin', 'https://partner.example']] }, 'pass'],
  [{ method: 'POST', headers: [['origin', 'https://evil.example.com']] }, '403 POLICY_CROSS_ORIGIN'],
  [{ method: 'POST', headers: [['origin', 'http://shop.example.com']] }, '403 POLICY_CROSS_ORIGIN'],
  [{ method: 'POST', headers: [['origin', 'https://shop.example.com:8443']] }, '403 POLICY_CROSS_ORIGIN'],
  [{ method: 'DELETE', headers: [['origin', 'null']] }, '403 POLICY_CROSS_ORIGIN'],
  // A form on a page with a hidden origin.
  [{ method: 'POST', headers: hidden('same-origin') }, 'pass'],
  [{ method: 'POST', headers: hidden('same-site') }, '403 POLICY_CROSS_ORIGIN'],
  [
    { method: 'POST', headers: [...hidden('same-origin'), ...hidden('cross-site').slice(1)] },
    '403 POLICY_CROSS_ORIGIN',
  ],
  [
    { method: 'POST', headers: [['origin', 'https://evil.example.com'], ...hidden('same-origin').slice(1)] },
    '403 POLICY_CROSS_ORIGIN',
  ],
  [{ isUpgrade: true, headers: [['origin', 'https://evil.example.com']] }, '403 POLICY_CROSS_ORIGIN'],
  [{ headers: [['origin', 'https://evil.example.com']] }, 'pass'],
];

it.each(ORIGINS)('with the login cookie, %j: %s', (asked, wanted) => {
  const policy = policyOf([authOf(ANYONE)], { ...LOGIN, trusted_origins: ['https://partner.example'] });
  const request = requestOf({ ...asked, headers: [COOKIE, ...(asked.headers ?? [])] });
  expect(verdictOf(drive(policy, request, opens(sessionOf())))).toBe(wanted);
});

it('a request with an access token passes without an origin check', () => {
  const asked = {
    method: 'POST',
    headers: [COOKIE, ['x-tunnel-token', TOKEN], ['origin', 'https://evil.example']] as const,
  };
  expect(verdictOf(ask({ ...ANYONE, ...TOKENS }, asked))).toBe('pass');
});

it('a cross-origin request with the login cookie passes with a valid JWT, but not with a password, which browsers add', () => {
  const from = (...more: readonly HeaderPair[]): Asked => ({
    method: 'POST',
    headers: [COOKIE, ['origin', 'https://app.example'], ...more],
  });
  const meet =
    (claims: Record<string, unknown> | null): Meet =>
    (effect) =>
      effect.kind === 'verify-jwt' ? { kind: 'jwt-verified', claims } : opens(sessionOf())(effect);
  const auth = { ...ANYONE, ...JWT, ...BASIC };
  const byJwt = ask(auth, from(['authorization', 'Bearer a.b.c']), meet({ sub: 'robot' }));
  expect(byJwt.outcome).toMatchObject({ kind: 'pass', identity: { user: 'robot', method: 'jwt' } });
  expect(verdictOf(ask(auth, from(['authorization', 'Bearer a.b.c']), meet(null)))).toBe('403 POLICY_CROSS_ORIGIN');
  const byPassword = ask(auth, from(basic('anna:right')), meet(null));
  expect(verdictOf(byPassword)).toBe('403 POLICY_CROSS_ORIGIN');
  expect(byPassword.effects.map(({ kind }) => kind)).toEqual(['open-cookie']);
});
