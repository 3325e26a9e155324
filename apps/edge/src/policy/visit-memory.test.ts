import type { PolicyEvent, PolicyNeed } from '@tunnel/policy';
import { expect, it } from 'vitest';
import { VISIT_MEMORY_MAX_CHARS, VISIT_MEMORY_MS, VisitMemory } from './visit-memory.ts';

const BASIC = { realm: 'tunnel', users: { ann: '$scrypt$' } };
const JWT = { issuer: 'https://id.example.com', audience: ['shop'] };
const LOGIN = { provider: 'x', session_secs: 60, trusted_origins: [] };
const ABOUT = { served: {}, host: 'shop.example.com' };

const password = (text: string, user = 'ann', auth = BASIC): PolicyNeed => ({
  kind: 'check-password',
  auth,
  user,
  password: text,
  hash: '$scrypt$',
});
const jwt = (token: string): PolicyNeed => ({ kind: 'verify-jwt', auth: JWT, token });
const cookie = (...sealed: string[]): PolicyNeed => ({ kind: 'open-cookie', login: LOGIN, sealed });

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const claims = (exp: number): PolicyEvent => ({ kind: 'jwt-verified', claims: { sub: '1', exp } });
const SESSION: PolicyEvent = {
  kind: 'cookie-opened',
  session: { sub: '1', email: null, emailVerified: false, claims: {}, expiresAt: 1 },
};

const kept = (need: PolicyNeed, event: PolicyEvent, nowMs = 0): VisitMemory => {
  const memory = new VisitMemory();
  memory.keep(need, ABOUT, event, nowMs);
  return memory;
};

it('the same words under the same policy are known again', () => {
  expect(kept(password('open'), RIGHT).find(password('open'), ABOUT, 1)).toBe(RIGHT);
  expect(kept(jwt('a.b.c'), claims(100)).find(jwt('a.b.c'), ABOUT, 1)).toEqual(claims(100));
  expect(kept(cookie('sealed'), SESSION).find(cookie('sealed'), ABOUT, 1)).toBe(SESSION);
});

it('nothing else is', () => {
  const memory = kept(password('open'), RIGHT);
  for (const need of [
    password('Open'),
    password(''),
    password('open', 'bob'),
    password('open', 'ann', { ...BASIC }),
    jwt('open'),
    cookie('open'),
  ])
    expect(memory.find(need, ABOUT, 1)).toBeNull();
  expect(memory.find(password('open'), { ...ABOUT, served: {} }, 1)).toBeNull();
  expect(memory.find(password('open'), { ...ABOUT, host: 'other.example.com' }, 1)).toBeNull();
  expect(kept(cookie('a'), SESSION).find(cookie('a', 'b'), ABOUT, 1)).toBeNull();
  expect(kept(cookie('a', 'b'), SESSION).find(cookie('a', 'b'), ABOUT, 1)).toBeNull();
});

it('what lets nobody in is not kept, and does not take the room of what does', () => {
  const memory = kept(password('open'), RIGHT);
  memory.keep(password('wrong'), ABOUT, { kind: 'password-checked', isRight: false }, 1);
  memory.keep(jwt('a.b.c'), ABOUT, { kind: 'jwt-verified', claims: null }, 1);
  memory.keep(cookie('x'), ABOUT, { kind: 'cookie-opened', session: null }, 1);
  expect(memory.find(password('wrong'), ABOUT, 2)).toBeNull();
  expect(memory.find(password('open'), ABOUT, 2)).toBe(RIGHT);
});

it('it is looked up again after some seconds, and a token not used past its end', () => {
  const memory = kept(password('open'), RIGHT, 1000);
  expect(memory.find(password('open'), ABOUT, 999 + VISIT_MEMORY_MS)).toBe(RIGHT);
  expect(memory.find(password('open'), ABOUT, 1000 + VISIT_MEMORY_MS)).toBeNull();
  const short = kept(jwt('a.b.c'), claims(5), 1000);
  expect(short.find(jwt('a.b.c'), ABOUT, 4999)).not.toBeNull();
  expect(short.find(jwt('a.b.c'), ABOUT, 5000)).toBeNull();
  expect(kept(jwt('a.b.c'), { kind: 'jwt-verified', claims: {} }).find(jwt('a.b.c'), ABOUT, 1)).toBeNull();
});

it('long words are not kept', () => {
  const long = 'x'.repeat(VISIT_MEMORY_MAX_CHARS + 1);
  expect(kept(jwt(long), claims(100)).find(jwt(long), ABOUT, 1)).toBeNull();
});
