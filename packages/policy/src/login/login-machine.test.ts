import fc from 'fast-check';
import { expect, it } from 'vitest';
import { authOf, NOW, policyOf } from '../policy.fixture.ts';
import {
  checkCallback,
  loginState,
  namedClaims,
  type PendingLogin,
  pendingLogin,
  queryValues,
  returnPathOf,
  sessionFrom,
} from './login-machine.ts';

const CHANCES = { id: '0a1b2c3d', secret: 'secret-of-state', nonce: 'n', verifier: 'v' };
const PENDING = pendingLogin(CHANCES, '/deep?x=1', NOW);
const BY_ID = new Map<string, PendingLogin>([[PENDING.id, PENDING]]);

const verdict = (query: string, byId: ReadonlyMap<string, PendingLogin> = BY_ID, nowMs = NOW): string => {
  const made = checkCallback(query, byId, nowMs);
  return made.kind === 'go' ? `go ${made.code}` : `${made.why} ${made.fault.code}`;
};

it('a login that this browser began continues with its sealed state', () => {
  const made = checkCallback(`?code=c%2F1&state=${loginState(PENDING)}&iss=https%3A%2F%2Fi`, BY_ID, NOW);
  expect(made).toEqual({ kind: 'go', pending: PENDING, code: 'c/1', issuer: 'https://i' });
  expect(PENDING).toMatchObject({ returnPath: '/deep?x=1', expiresAt: NOW / 1000 + 600 });
});

const STATE = `state=${loginState(PENDING)}`;

it.each([
  ['?code=c', 'state-missing POLICY_LOGIN_STATE'],
  ['', 'state-missing POLICY_LOGIN_STATE'],
  ['?code=c&state=ffffffff.secret-of-state', 'state-unknown POLICY_LOGIN_STATE'],
  ['?code=c&state=0a1b2c3d', 'state-foreign POLICY_LOGIN_STATE'],
  ['?code=c&state=0a1b2c3d.secret-of-statf', 'state-foreign POLICY_LOGIN_STATE'],
  [`?code=c&${STATE}x`, 'state-foreign POLICY_LOGIN_STATE'],
  [`?code=c&code=d&${STATE}`, 'query-unclear POLICY_LOGIN_STATE'],
  [`?code=%ff&${STATE}`, 'query-unclear POLICY_LOGIN_STATE'],
  [`?${STATE}`, 'code-missing POLICY_PROVIDER_AWAY'],
  [`?error=access_denied&${STATE}`, 'provider-refused POLICY_LOGIN_REFUSED'],
  [`?error=server_error&${STATE}`, 'provider-failed POLICY_PROVIDER_AWAY'],
  ['?error=access_denied', 'state-missing POLICY_LOGIN_STATE'],
])('the callback query %s is refused with its specific reason', (query, wanted) => {
  expect(verdict(query)).toBe(wanted);
});

it('a login state that was used before, or comes from another browser, is unknown', () => {
  expect(verdict(`?code=c&${STATE}`, new Map())).toBe('state-unknown POLICY_LOGIN_STATE');
});

it('a login expires after 600 s', () => {
  expect(verdict(`?code=c&${STATE}`, BY_ID, NOW + 599_999)).toBe('go c');
  expect(verdict(`?code=c&${STATE}`, BY_ID, NOW + 600_000)).toBe('state-expired POLICY_LOGIN_STATE');
});

it('a refused login does not reveal the state or the code', () => {
  const made = checkCallback(`?code=c&${STATE}x`, BY_ID, NOW);
  expect(JSON.stringify(made)).not.toContain('secret');
});

it('a callback query is parsed as a form, and refused if a key appears twice', () => {
  expect([...(queryValues('?a=1+2&b&c=%3D&&') ?? [])]).toEqual([
    ['a', '1 2'],
    ['b', ''],
    ['c', '='],
  ]);
  expect(queryValues('?a=1&%61=2')).toBeNull();
});

it.each([
  ['/a?b=1', '/a?b=1'],
  ['//evil.example/x', '/evil.example/x'],
  ['/\\evil.example', '/evil.example'],
  ['/\\/\\evil.example', '/evil.example'],
  ['https://evil.example/', '/'],
  ['evil', '/'],
  ['', '/'],
  ['*', '/'],
  ['/a\r\nSet-Cookie: x', '/'],
  ['/a\t/b', '/'],
  ['/%0d%0aSet-Cookie:', '/%0d%0aSet-Cookie:'],
  ['/.tunnel/callback?code=1', '/'],
  ['/.tunnel/logout', '/'],
  [`/a?${'x'.repeat(3000)}`, '/a'],
  [`/${'x'.repeat(3000)}`, '/'],
])('after a login, the return path %j leads to %j', (path, wanted) => {
  expect(returnPathOf(path)).toBe(wanted);
});

it('a return path always stays on the same host and on one line', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('/', '\\', 'a', '.', ':', '\r', '\n', '\t', '%', '?', '@', 'ü') }),
      (text) => {
        expect(returnPathOf(text)).toMatch(/^\/(?![/\\])[!-~]*$/);
      },
    ),
  );
});

it('a session keeps only the claims that rules name', () => {
  const policy = policyOf([
    authOf({ login: { claims: { role: ['x'] } } }),
    authOf({ login: { claims: { groups: ['y'], role: [] } } }),
  ]);
  expect(namedClaims(policy)).toEqual(['groups', 'role']);
  const token = { sub: 's', email: 'A@b.c', email_verified: true, role: 'dev', groups: ['a', 7, { x: 1 }], phone: '1' };
  const rules = { claims: namedClaims(policy), sessionSecs: 60, nowMs: NOW };
  expect(sessionFrom(token, rules)).toEqual({
    sub: 's',
    email: 'A@b.c',
    emailVerified: true,
    claims: { groups: ['a', '7'], role: ['dev'] },
    expiresAt: NOW / 1000 + 60,
  });
  expect(sessionFrom({ email: 'a@b.c' }, rules)).toBeNull();
  expect(sessionFrom({ sub: '' }, rules)).toBeNull();
});

it('an e-mail address counts as verified only if the token has a boolean true', () => {
  const rules = { claims: [], sessionSecs: 60, nowMs: NOW };
  for (const value of ['true', 1, undefined, false, 'false']) {
    expect(sessionFrom({ sub: 's', email: 'a@b.c', email_verified: value }, rules)?.emailVerified).toBe(false);
  }
});
