import type { PolicyEffect, PolicyEvent } from '@tunnel/policy';
import { expect, it } from 'vitest';
import { CONNECTION_AUTH_MAX_CHARS, CONNECTION_AUTH_MS, ConnectionAuthCache } from './connection-auth-cache.ts';

const BASIC = { realm: 'tunnel', users: { ann: '$scrypt$' } };
const JWT = { issuer: 'https://id.example.com', audience: ['shop'] };
const LOGIN = { provider: 'x', session_secs: 60, trusted_origins: [] };
const SUBJECT = { served: {}, host: 'shop.example.com' };

const password = (text: string, user = 'ann', auth = BASIC): PolicyEffect => ({
  kind: 'check-password',
  auth,
  user,
  password: text,
  hash: '$scrypt$',
});
const jwt = (token: string): PolicyEffect => ({ kind: 'verify-jwt', auth: JWT, token });
const cookie = (...sealed: string[]): PolicyEffect => ({ kind: 'open-cookie', login: LOGIN, sealed });

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const claims = (exp: number): PolicyEvent => ({ kind: 'jwt-verified', claims: { sub: '1', exp } });
const SESSION: PolicyEvent = {
  kind: 'cookie-opened',
  session: { sub: '1', email: null, emailVerified: false, claims: {}, expiresAt: 1 },
};

const kept = (effect: PolicyEffect, event: PolicyEvent, nowMs = 0): ConnectionAuthCache => {
  const authCache = new ConnectionAuthCache();
  authCache.keep(effect, SUBJECT, event, nowMs);
  return authCache;
};

it('a credential under the same policy is recognized again', () => {
  expect(kept(password('open'), RIGHT).find(password('open'), SUBJECT, 1)).toBe(RIGHT);
  expect(kept(jwt('a.b.c'), claims(100)).find(jwt('a.b.c'), SUBJECT, 1)).toEqual(claims(100));
  expect(kept(cookie('sealed'), SESSION).find(cookie('sealed'), SUBJECT, 1)).toBe(SESSION);
});

it('another credential, user, policy or host is not recognized', () => {
  const authCache = kept(password('open'), RIGHT);
  for (const effect of [
    password('Open'),
    password(''),
    password('open', 'bob'),
    password('open', 'ann', { ...BASIC }),
    jwt('open'),
    cookie('open'),
  ])
    expect(authCache.find(effect, SUBJECT, 1)).toBeNull();
  expect(authCache.find(password('open'), { ...SUBJECT, served: {} }, 1)).toBeNull();
  expect(authCache.find(password('open'), { ...SUBJECT, host: 'other.example.com' }, 1)).toBeNull();
  expect(kept(cookie('a'), SESSION).find(cookie('a', 'b'), SUBJECT, 1)).toBeNull();
  expect(kept(cookie('a', 'b'), SESSION).find(cookie('a', 'b'), SUBJECT, 1)).toBeNull();
});

it('a rejected credential is not stored, and does not replace an accepted credential', () => {
  const authCache = kept(password('open'), RIGHT);
  authCache.keep(password('wrong'), SUBJECT, { kind: 'password-checked', isRight: false }, 1);
  authCache.keep(jwt('a.b.c'), SUBJECT, { kind: 'jwt-verified', claims: null }, 1);
  authCache.keep(cookie('x'), SUBJECT, { kind: 'cookie-opened', session: null }, 1);
  expect(authCache.find(password('wrong'), SUBJECT, 2)).toBeNull();
  expect(authCache.find(password('open'), SUBJECT, 2)).toBe(RIGHT);
});

it('a credential is checked again after a few seconds, and a token is never used after its expiry', () => {
  const authCache = kept(password('open'), RIGHT, 1000);
  expect(authCache.find(password('open'), SUBJECT, 999 + CONNECTION_AUTH_MS)).toBe(RIGHT);
  expect(authCache.find(password('open'), SUBJECT, 1000 + CONNECTION_AUTH_MS)).toBeNull();
  const short = kept(jwt('a.b.c'), claims(5), 1000);
  expect(short.find(jwt('a.b.c'), SUBJECT, 4999)).not.toBeNull();
  expect(short.find(jwt('a.b.c'), SUBJECT, 5000)).toBeNull();
  expect(kept(jwt('a.b.c'), { kind: 'jwt-verified', claims: {} }).find(jwt('a.b.c'), SUBJECT, 1)).toBeNull();
});

it('a long credential is not stored', () => {
  const long = 'x'.repeat(CONNECTION_AUTH_MAX_CHARS + 1);
  expect(kept(jwt(long), claims(100)).find(jwt(long), SUBJECT, 1)).toBeNull();
});
