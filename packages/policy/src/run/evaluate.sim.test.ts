// Random policies and requests: compiled rules agree with the naive implementation, and no spelling of a path evades a rule.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { applyRequestChanges } from '../edits/apply-request-changes.ts';
import { readingsOf } from '../match/path-readings.ts';
import { type Facts, type NaiveResult, naiveGlob, naiveMatches, naiveRun } from '../naive-policy.fixture.ts';
import {
  authOf,
  compiledLists,
  DIGESTS,
  type Driven,
  drive,
  driveCompiled,
  headOf,
  LOGIN,
  type Meet,
  NOW,
  policyOf,
  requestOf,
  verdictOf,
} from '../policy.fixture.ts';
import type { Match, Policy, Rule } from '../policy.ts';
import type { HeaderPair, LoggedIn, PolicyRequest } from '../policy-step.ts';

// ---- driver results, the same for both implementations ----

const SESSIONS: Readonly<Record<string, LoggedIn>> = {
  'sealed-anna': {
    sub: 's1',
    email: 'Anna@example.com',
    emailVerified: true,
    claims: { role: ['dev'] },
    expiresAt: NOW / 1000 + 60,
  },
  'sealed-bob': {
    sub: 's2',
    email: 'bob@other.org',
    emailVerified: true,
    claims: { role: ['ops', 'dev'] },
    expiresAt: NOW / 1000 + 60,
  },
  'sealed-eve': { sub: 's3', email: 'anna@example.com', emailVerified: false, claims: {}, expiresAt: NOW / 1000 + 60 },
};

const facts: Facts = {
  isRight: (user, password) => password === `${user}-secret`,
  claimsOf: (token) => (token === 'good' ? { sub: 'robot', tier: 'gold' } : null),
  sessionOf: (sealed) => SESSIONS[sealed] ?? null,
  retryAfterSecs: (key) => (key.length % 3 === 0 ? 2 : null),
  sha256Hex: (text) => DIGESTS.sha256Hex(text),
};

const meet: Meet = (effect) => {
  switch (effect.kind) {
    case 'check-password':
      return { kind: 'password-checked', isRight: effect.hash !== null && facts.isRight(effect.user, effect.password) };
    case 'verify-jwt':
      return { kind: 'jwt-verified', claims: facts.claimsOf(effect.token) };
    case 'open-cookie':
      return { kind: 'cookie-opened', session: facts.sessionOf(effect.sealed[0] ?? '') };
    case 'take-token':
      return { kind: 'token-taken', retryAfterSecs: facts.retryAfterSecs(effect.key) };
    case 'begin-login':
      return { kind: 'login-begun', location: 'https://login.example/', setCookies: [] };
    case 'hold-body':
    case 'finish-login':
      throw new Error('not in these policies');
  }
};

// ---- requests ----

const GLOBS = ['/admin/**', '/admin', '/*', '/**', '/api/*', '/a/**/b', '/Admin/**', '/x*/y', '/'];
const PIECES = [
  '/admin',
  '/Admin',
  '/api',
  '/a',
  '/b',
  '/x1',
  '/y',
  '/%61dmin',
  '/..',
  '/.',
  '/%2e%2e',
  '//',
  '/',
  '\\admin',
  '%2fadmin',
  ';v=1',
  '%5cb',
  '/a%2fb',
  '/;x',
];

const somePath = fc
  .tuple(
    fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '', '?q=/admin', '?'),
  )
  .map(([pieces, query]) => {
    const path = pieces.join('');
    return (path.startsWith('/') ? path : `/${path}`) + query;
  });

const basic = (text: string): string => {
  const bits = [...text].map((one) => one.charCodeAt(0).toString(2).padStart(8, '0')).join('');
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return (bits.match(/.{1,6}/g) ?? []).map((six) => digits[Number.parseInt(six.padEnd(6, '0'), 2)]).join('');
};

const someField: fc.Arbitrary<HeaderPair> = fc.constantFrom<HeaderPair>(
  ['authorization', `Basic ${basic('anna:anna-secret')}`],
  ['authorization', `Basic ${basic('anna:wrong')}`],
  ['authorization', `basic ${basic('nobody:nobody-secret')}`],
  ['authorization', 'Bearer good'],
  ['authorization', 'Bearer bad'],
  ['x-tunnel-token', 'token-of-ci'],
  ['x-tunnel-token', 'no token'],
  ['x-tunnel-user', 'root'],
  ['x_tunnel_user', 'root'],
  ['x-tunnel_auth', 'login'],
  ['cookie', 'a=1; __Host-tunnel_login=sealed-anna; b=2'],
  ['cookie', '__Host-tunnel_login=sealed-bob'],
  ['cookie', '__Host-tunnel_login=sealed-eve; tunnel_login_0a1b2c3d=x'],
  ['cookie', 'a=1; tunnel_login=sealed-anna'],
  ['origin', 'https://evil.example.com'],
  ['origin', 'https://shop.example.com'],
  ['accept', 'text/html'],
  ['sec-fetch-mode', 'cors'],
  ['x-env', 'test'],
  ['access-control-request-method', 'PUT'],
);

const someRequest: fc.Arbitrary<PolicyRequest> = fc
  .record({
    method: fc.constantFrom('GET', 'GET', 'POST', 'OPTIONS', 'HEAD'),
    path: somePath,
    headers: fc.uniqueArray(someField, { maxLength: 5, selector: ([name]) => name }),
    address: fc.constantFrom('192.0.2.1', '10.1.2.3', '203.0.113.77'),
    isUpgrade: fc.boolean(),
    bodyLength: fc.constantFrom(0, 100, null),
  })
  .map(requestOf);

// ---- policies ----

const someMatch = (depth: number): fc.Arbitrary<Match> =>
  fc.record(
    {
      method: fc.subarray(['GET', 'POST', 'OPTIONS'], { minLength: 1 }),
      path: fc.uniqueArray(fc.constantFrom(...GLOBS), { minLength: 1, maxLength: 2 }),
      header: fc.constantFrom<NonNullable<Match['header']>>(
        { 'x-env': true },
        { 'x-env': false },
        { 'x-env': ['t*'] },
        { origin: ['*shop*', 'x'] },
      ),
      address: fc.subarray(['10.0.0.0/8', '192.0.2.0/24', '203.0.113.77'], { minLength: 1 }),
      ...(depth > 0 ? { not: someMatch(depth - 1) } : {}),
    },
    { requiredKeys: [] },
  );

const someAuth = fc
  .record(
    {
      basic: fc.constant({ realm: 'tunnel', users: { anna: '$scrypt$' } }),
      tokens: fc.constant([{ name: 'ci', sha256: DIGESTS.sha256Hex('token-of-ci') }]),
      jwt: fc.constantFrom(
        { issuer: 'https://i', audience: ['a'] },
        { issuer: 'https://i', audience: ['a'], claims: { tier: ['gold', 'x'] } },
        { issuer: 'https://i', audience: ['a'], claims: { tier: ['tin'] } },
      ),
      login: fc.constantFrom(
        { anyone: true as const },
        { emails: ['ANNA@example.com'] },
        { domains: ['other.org'] },
        { claims: { role: ['ops'] } },
      ),
    },
    { requiredKeys: [] },
  )
  .filter((auth) => Object.keys(auth).length > 0)
  .map(authOf);

const someAction: fc.Arbitrary<Rule> = fc.oneof(
  fc.constant<Rule>({ allow: true }),
  fc.constantFrom(403, 404).map((deny): Rule => ({ deny })),
  fc.constant<Rule>({ allow_addresses: ['10.0.0.0/8', '192.0.2.1'] }),
  { arbitrary: someAuth, weight: 3 },
  fc
    .constantFrom('address', 'user', 'tunnel', 'header:x-env')
    .map((by): Rule => ({ rate_limit: { requests: 5, per_secs: 1, burst: 5, by } })),
  fc.constantFrom(10, 1000).map((max_body): Rule => ({ max_body })),
  fc.constant<Rule>({ redirect: { to: '/new{path}', status: 302 } }),
  fc.constant<Rule>({ respond: { status: 503, body: 'closed', content_type: 'text/plain' } }),
  fc
    .constantFrom({ strip_prefix: '/api' }, { add_prefix: '/v2' }, { strip_prefix: '/admin', add_prefix: '/v1' })
    .map((rewrite): Rule => ({ rewrite })),
  fc.constantFrom('api', 'static').map((route): Rule => ({ route })),
  fc
    .constantFrom(
      { set: { 'x-who': '{user} at {address}' } },
      { set: { authorization: 'Bearer upstream' } },
      { add: { 'x-env': 'more', 'x-who': '1' } },
      { remove: ['x-env', 'authorization', 'x-who'] },
    )
    .map((request_headers): Rule => ({ request_headers })),
  fc.constant<Rule>({ response_headers: { set: { 'x-frame-options': 'DENY' } } }),
  fc.constant<Rule>({ cors: { origins: ['https://shop.example.com'], credentials: false, max_age_secs: 600 } }),
);

const someRule: fc.Arbitrary<Rule> = fc
  .tuple(someAction, fc.option(someMatch(2), { nil: undefined }))
  .map(([rule, match]) => (match === undefined ? rule : { ...rule, match }));

const somePolicy = (login: fc.Arbitrary<Policy['login']>): fc.Arbitrary<Policy> =>
  fc.tuple(fc.array(someRule, { maxLength: 6 }), login).map(([rules, provider]) => policyOf(rules, provider));

const tunnels = somePolicy(fc.constantFrom(null, LOGIN, { ...LOGIN, trusted_origins: ['https://evil.example.com'] }));
const operators = fc.option(somePolicy(fc.constant(null)));

// ---- results ----

const resultOf = (request: PolicyRequest, driven: Driven): NaiveResult => {
  const { outcome } = driven;
  const seen = {
    verdict: verdictOf(driven),
    matched: outcome.matched.map(({ list, index }) => `${list} ${index}`),
    user: outcome.identity?.user ?? null,
  };
  if (outcome.kind === 'answer') {
    const rule = outcome.rule === null ? null : `${outcome.rule.list} ${outcome.rule.index}`;
    return { ...seen, rule, path: null, service: null, fields: null, maxBody: null };
  }
  const head = headOf(request);
  const changed = outcome.changes === null ? head : applyRequestChanges(head, outcome.changes);
  const fields = changed.headers.filter(({ role }) => role !== 'host').map(({ lower, value }) => `${lower}: ${value}`);
  return {
    ...seen,
    rule: null,
    path: changed.path,
    service: outcome.changes?.service ?? null,
    fields: fields.sort(),
    maxBody: outcome.changes?.maxBody ?? null,
  };
};

it('compiled rules give the same result as a naive implementation', () => {
  fc.assert(
    fc.property(tunnels, operators, someRequest, (tunnel, operator, request) => {
      const lists = { operator, tunnel };
      expect(resultOf(request, drive(lists, request, meet))).toEqual(naiveRun(lists, request, facts));
    }),
    { numRuns: 1000 },
  );
});

it('cached values of one request do not change the result of the next', () => {
  const requests = fc.array(someRequest, { minLength: 2, maxLength: 5 });
  fc.assert(
    fc.property(tunnels, operators, requests, (tunnel, operator, some) => {
      const lists = { operator, tunnel };
      const compiled = compiledLists(lists);
      // Every request runs twice in a row, so that the second run finds the cached values of the first.
      for (const request of [...some, ...some].flatMap((one) => [one, one])) {
        const { outcome } = driveCompiled(compiled, request, meet);
        expect(outcome).toEqual(drive(lists, request, meet).outcome);
      }
    }),
    { numRuns: 400 },
  );
});

it('a restricting rule applies if its glob matches any reading of the path', () => {
  fc.assert(
    fc.property(fc.constantFrom(...GLOBS), someRequest, fc.array(someRule, { maxLength: 3 }), (glob, request, rest) => {
      const policy = policyOf([{ match: { path: [glob] }, deny: 403 }, ...rest], LOGIN);
      const isMeant = readingsOf(request.path).all.some((text) => naiveGlob(glob, text));
      if (isMeant) expect(verdictOf(drive(policy, request, meet))).toBe('403 POLICY_DENIED');
    }),
    { numRuns: 500 },
  );
});

it('an allow rule does not apply if its glob misses any reading of the path', () => {
  fc.assert(
    fc.property(fc.constantFrom(...GLOBS), someRequest, (glob, request) => {
      const policy = policyOf([{ match: { path: [glob] }, allow: true }, { deny: 403 }]);
      const { plain, others } = readingsOf(request.path);
      const isOutside = [plain, ...others].some((text) => !naiveGlob(glob, text));
      if (isOutside) expect(verdictOf(drive(policy, request, meet))).toBe('403 POLICY_DENIED');
    }),
    { numRuns: 500 },
  );
});

it("an operator's deny holds for any rules of the tunnel", () => {
  fc.assert(
    fc.property(tunnels, someMatch(1), someRequest, (tunnel, match, request) => {
      const deny: Rule = { match, deny: 451 };
      const { outcome } = drive({ operator: policyOf([deny]), tunnel }, request, meet);
      if (naiveMatches(deny, request))
        expect(outcome).toMatchObject({ kind: 'answer', rule: { list: 'operator', index: 1 } });
      else expect(outcome.matched.filter(({ list }) => list === 'operator')).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

it('no request passes an auth rule without an identity, for any other rules', () => {
  fc.assert(
    fc.property(fc.array(someRule, { maxLength: 4 }), someAuth, someRequest, (rest, auth, request) => {
      const { outcome } = drive(policyOf([auth, ...rest], LOGIN), request, meet);
      if (outcome.kind === 'pass') expect(outcome.identity).not.toBeNull();
    }),
    { numRuns: 500 },
  );
});
