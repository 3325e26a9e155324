import fc from 'fast-check';
import { expect, it } from 'vitest';
import { requestOf } from '../policy.fixture.ts';
import {
  clearedCookies,
  clearedLoginCookie,
  cookieForService,
  loginCookie,
  pendingCookie,
  pendingLogins,
  sealedLogins,
} from './login-cookies.ts';

const cookies = (...values: string[]) =>
  requestOf({ headers: values.map((value) => ['Cookie', value] as const) }).headers;

it('a login cookie is valid for this host only and hidden from scripts', () => {
  expect(loginCookie('https', 'abc', 60)).toBe(
    '__Host-tunnel_login=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure',
  );
  expect(loginCookie('http', 'abc', 60)).toBe('tunnel_login=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax');
  expect(pendingCookie('https', '0a1b2c3d', 'x')).toMatch(/^__Host-tunnel_login_0a1b2c3d=x; Path=\/; Max-Age=600; /);
  expect(clearedLoginCookie('http')).toMatch(/^tunnel_login=; Path=\/; Max-Age=0/);
  expect(clearedCookies('https', ['0a1b2c3d'])).toEqual([
    '__Host-tunnel_login_0a1b2c3d=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure',
  ]);
});

it('over https only the __Host- cookie counts, which no sibling domain can set', () => {
  const both = cookies('tunnel_login=planted; __Host-tunnel_login="good"');
  expect(sealedLogins(both, 'https')).toEqual(['good']);
  expect(sealedLogins(both, 'http')).toEqual(['planted']);
  expect(sealedLogins(cookies('a=1', 'b=tunnel_login=2'), 'http')).toEqual([]);
  expect(sealedLogins(cookies('__host-tunnel_login=x'), 'https')).toEqual([]);
});

it('of many login cookies, only the first four are opened', () => {
  const many = cookies(Array.from({ length: 50 }, (_, at) => `tunnel_login=v${at}`).join('; '));
  expect(sealedLogins(many, 'http')).toEqual(['v0', 'v1', 'v2', 'v3']);
});

it('pending logins are found by their ids, in the order of the cookies', () => {
  const headers = cookies(
    '__Host-tunnel_login_0000000b=2; x=1',
    '__Host-tunnel_login_0000000a=1; __Host-tunnel_login_zz=3; tunnel_login_0000000c=4',
  );
  expect([...pendingLogins(headers, 'https')]).toEqual([
    ['0000000b', '2'],
    ['0000000a', '1'],
  ]);
});

it("the service gets all cookies except the edge's, and no Cookie header if none is left", () => {
  expect(cookieForService(cookies('a=1; __Host-tunnel_login=x; b="2"'))).toBe('a=1; b="2"');
  expect(cookieForService(cookies('__Host-tunnel_login=x', 'TUNNEL_LOGIN_0a1b2c3d=y;tunnel_login=z'))).toBe('');
  expect(cookieForService(cookies('a=1', 'tunnel_login=x', 'c'))).toBe('a=1; c');
  expect(cookieForService(cookies('a=1; tunnel_logins=2; b=__Host-tunnel_login=x'))).toBeNull();
  expect(cookieForService(cookies('a=1'))).toBeNull();
});

/** Naive parser: splits a Cookie header into pairs, as in RFC 6265. */
const pairsOf = (value: string): (readonly [name: string, value: string, pair: string])[] =>
  value.split(';').map((pair) => {
    const equals = pair.indexOf('=');
    const text = pair.slice(equals + 1).trim();
    const isQuoted = text.length >= 2 && text.startsWith('"') && text.endsWith('"');
    return [(equals === -1 ? pair : pair.slice(0, equals)).trim(), isQuoted ? text.slice(1, -1) : text, pair.trim()];
  });

it('in any Cookie header, every pair is read, and every login cookie of the edge is removed', () => {
  const piece = fc.constantFrom(
    'tunnel_login',
    '__Host-',
    'TUNNEL_',
    '_0a1b2c3d',
    '=',
    '=',
    ';',
    '; ',
    ' ',
    '\t',
    'a',
    '"',
  );
  fc.assert(
    fc.property(fc.array(fc.array(piece, { maxLength: 12 }), { minLength: 1, maxLength: 3 }), (fields) => {
      const values = fields.map((pieces) => pieces.join('').trim());
      const pairs = values.flatMap(pairsOf);
      const isOurs = (name: string): boolean => /^(?:__host-)?tunnel_login(?:_[0-9a-f]{8})?$/i.test(name);
      const others = pairs.filter(([name, , pair]) => !isOurs(name) && pair !== '').map(([, , pair]) => pair);
      const headers = cookies(...values);
      const sealed = pairs.filter(
        ([name, value, pair]) => name === 'tunnel_login' && value !== '' && pair.includes('='),
      );
      expect(sealedLogins(headers, 'http')).toEqual(sealed.map(([, value]) => value).slice(0, 4));
      expect(cookieForService(headers)).toBe(pairs.some(([name]) => isOurs(name)) ? others.join('; ') : null);
    }),
    { numRuns: 300 },
  );
});
