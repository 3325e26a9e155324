import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { renderPolicyAnswer } from '../compile/policy-answers.ts';
import {
  type Asked,
  authOf,
  type Driven,
  drive,
  headerOf,
  LOGIN,
  type Meet,
  policyOf,
  requestOf,
  sessionOf,
  verdictOf,
} from '../policy.fixture.ts';
import type { Rule } from '../policy.ts';
import type { HeaderPair } from '../policy-step.ts';

const AUTH = authOf({ login: { anyone: true } });
const CALLBACK = '/.tunnel/callback?code=c&state=s';
const LOGOUT = '/.tunnel/logout';

const finishes: Meet = (effect) =>
  effect.kind === 'finish-login'
    ? { kind: 'login-finished', returnPath: '/deep?x=1', setCookies: ['__Host-tunnel_login=new', 'b=2'] }
    : { kind: 'token-taken', retryAfterSecs: null };

const ask = (asked: Asked, meet: Meet = finishes, rules: readonly Rule[] = [AUTH]): Driven =>
  drive(policyOf(rules, LOGIN), requestOf(asked), meet);

const responseOf = ({ outcome }: Driven) => {
  if (outcome.kind !== 'answer') throw new Error('passed');
  return renderPolicyAnswer(outcome.answer, 'text/html');
};

it("the login callback finishes the login with this browser's pending cookies, and redirects to the return path", () => {
  const driven = ask({
    path: CALLBACK,
    headers: [['cookie', '__Host-tunnel_login_0a1b2c3d=p; tunnel_login_00000000=q']],
  });
  expect(driven.effects).toEqual([
    { kind: 'finish-login', login: LOGIN, query: '?code=c&state=s', pending: new Map([['0a1b2c3d', 'p']]) },
  ]);
  expect(driven.outcome).toMatchObject({ rule: null, edits: [] });
  expect(responseOf(driven)).toEqual({
    status: 302,
    headers: [
      ['location', '/deep?x=1'],
      ['cache-control', 'no-store'],
      ['set-cookie', '__Host-tunnel_login=new'],
      ['set-cookie', 'b=2'],
    ],
    body: '',
  });
});

it('the return path of the login driver is validated again', () => {
  const driven = ask({ path: CALLBACK }, () => ({
    kind: 'login-finished',
    returnPath: '//evil.example',
    setCookies: [],
  }));
  expect(headerOf(responseOf(driven).headers, 'location')).toBe('/evil.example');
});

it('a failed login is answered with its error', () => {
  const driven = ask({ path: CALLBACK }, () => ({ kind: 'failed', fault: new Fault('POLICY_LOGIN_STATE') }));
  expect(verdictOf(driven)).toBe('400 POLICY_LOGIN_STATE');
  expect(driven.outcome).toMatchObject({ rule: null });
  expect(verdictOf(ask({ path: CALLBACK, method: 'POST' }))).toBe('400 POLICY_LOGIN_STATE');
  expect(verdictOf(ask({ path: CALLBACK, method: 'HEAD' }))).toBe('400 POLICY_LOGIN_STATE');
});

it('rules about paths neither block the login paths nor let them through to the service', () => {
  const rules: Rule[] = [
    { allow: true },
    { redirect: { to: '/', status: 302 } },
    { match: { path: ['/**'] }, deny: 404 },
    AUTH,
  ];
  expect(ask({ path: CALLBACK }, finishes, rules).effects).toMatchObject([{ kind: 'finish-login' }]);
});

it('rules about addresses apply to the login paths', () => {
  const office: Rule = { allow_addresses: ['10.0.0.0/8'] };
  expect(verdictOf(ask({ path: CALLBACK }, finishes, [office, AUTH]))).toBe('403 POLICY_DENIED');
  expect(verdictOf(ask({ path: LOGOUT }, finishes, [{ match: { address: ['192.0.2.1'] }, deny: 403 }, AUTH]))).toBe(
    '403 POLICY_DENIED',
  );
  expect(verdictOf(ask({ path: CALLBACK }, finishes, [AUTH, office]))).toBe('302');
  const limit: Rule = { rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'address' } };
  expect(ask({ path: CALLBACK }, finishes, [limit, AUTH]).effects).toMatchObject([
    { kind: 'take-token' },
    { kind: 'finish-login' },
  ]);
});

it("the operator's rules apply before the login paths", () => {
  const driven = drive(
    { operator: policyOf([{ deny: 403 }]), tunnel: policyOf([AUTH], LOGIN) },
    requestOf({ path: CALLBACK }),
  );
  expect(driven.outcome).toMatchObject({ rule: { list: 'operator' } });
});

it('without a login, the login paths belong to the service', () => {
  expect(verdictOf(drive(policyOf([]), requestOf({ path: CALLBACK })))).toBe('pass');
});

it.each(['/.tunnel/callback/', '/.tunnel/Callback', '/x/../.tunnel/callback', '/.tunnel%2fcallback', '/.tunnel/other'])(
  'a similar path is no login path, so that rules apply to it: %s',
  (path) => {
    expect(verdictOf(ask({ path }))).toBe('401 POLICY_UNAUTHENTICATED');
  },
);

const COOKIE: HeaderPair = ['cookie', '__Host-tunnel_login=s; __Host-tunnel_login_0a1b2c3d=p'];

it('the sign-out page shows the signed-in user, and changes nothing', () => {
  const page = responseOf(
    ask({ path: LOGOUT, headers: [COOKIE] }, () => ({
      kind: 'cookie-opened',
      session: sessionOf({ email: 'a<b>@c.d' }),
    })),
  );
  expect(page.status).toBe(200);
  expect(page.body).toContain('signed in as a&#60;b&#62;@c.d');
  expect(page.body).toContain('<form method="post" action="/.tunnel/logout">');
  expect(headerOf(page.headers, 'set-cookie')).toBeNull();
  expect(responseOf(ask({ path: LOGOUT })).body).not.toContain('<form');
  const over = ask({ path: LOGOUT, headers: [COOKIE] }, () => ({ kind: 'cookie-opened', session: null }));
  expect(responseOf(over).body).toContain('not signed in');
});

it('signing out needs a POST from this origin: other sites get 403', () => {
  const post = (origin: string | null): Driven =>
    ask({ path: LOGOUT, method: 'POST', headers: [COOKIE, ...(origin === null ? [] : [['origin', origin] as const])] });
  for (const origin of [null, 'null', 'https://evil.example.com', 'http://shop.example.com']) {
    expect(verdictOf(post(origin))).toBe('403 POLICY_CROSS_ORIGIN');
  }
  const hidden = [COOKIE, ['origin', 'null'], ['sec-fetch-site', 'same-origin']] as const;
  expect(verdictOf(ask({ path: LOGOUT, method: 'POST', headers: hidden }))).toBe('303');
  const { status, headers } = responseOf(post('https://shop.example.com'));
  expect([status, headerOf(headers, 'location')]).toEqual([303, '/']);
  const cleared = headers
    .filter(([name]) => name === 'set-cookie')
    .map(([, value]) => value.slice(0, value.indexOf(';')));
  expect(cleared).toEqual(['__Host-tunnel_login=', '__Host-tunnel_login_0a1b2c3d=']);
  expect(verdictOf(ask({ path: LOGOUT, method: 'PUT' }))).toBe('405 POLICY_DENIED');
});

it('a rejected visitor sees the signed-in account and a button to sign out', () => {
  const refused = authOf({ login: { emails: ['boss@example.com'] } });
  const page = responseOf(
    ask({ headers: [COOKIE] }, () => ({ kind: 'cookie-opened', session: sessionOf() }), [refused]),
  );
  expect(page.status).toBe(403);
  expect(page.body).toContain('anna@example.com is not allowed to visit this tunnel.');
  expect(page.body).toContain('action="/.tunnel/logout"');
});
