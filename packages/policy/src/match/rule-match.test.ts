import { hostOfAuthority, PartField } from '@tunnel/http1';
import { describe, expect, it } from 'vitest';
import { ACTION_NAMES, type Match } from '../policy.ts';
import { RequestReadings } from './path-readings.ts';
import { compileMatch, restricts } from './rule-match.ts';

type Headers = readonly (readonly [name: string, value: string])[];

const requestOf = (line: string, headers: Headers = [], address = '192.0.2.1', authority = 'shop.example.com') => {
  const [method = '', path = ''] = line.split(' ');
  const fields = headers.map(([name, value]) => new PartField(name, value, 'ordinary'));
  return { method, path, address, headers: fields, authority, host: hostOfAuthority(authority) ?? '' };
};

const matches = (match: Match | undefined, isRestricting: boolean, ...about: Parameters<typeof requestOf>): boolean => {
  const request = requestOf(...about);
  return compileMatch(match, isRestricting).matches(request, new RequestReadings(request.path));
};

const whyNot = (match: Match, isRestricting: boolean, ...about: Parameters<typeof requestOf>): string => {
  const request = requestOf(...about);
  return compileMatch(match, isRestricting).whyNot(request, new RequestReadings(request.path));
};

describe('a match of a rule', () => {
  it('is optional: a rule without a match applies to every request', () => {
    expect(matches(undefined, true, 'GET /%2f..;/x')).toBe(true);
    expect(matches({}, false, 'GET /%2f%5c\\;%3b')).toBe(true);
  });

  it('needs all of its fields, and at least one alternative of each', () => {
    const match: Match = { method: ['GET', 'POST'], path: ['/a/**', '/b'], address: ['10.0.0.0/8', '192.0.2.0/24'] };
    expect(matches(match, false, 'POST /b')).toBe(true);
    expect(matches(match, false, 'GET /a/x', [], '10.1.1.1')).toBe(true);
    expect(whyNot(match, false, 'PUT /b')).toBe('method');
    expect(whyNot(match, false, 'GET /c')).toBe('path');
    expect(whyNot(match, false, 'GET /b', [], '203.0.113.1')).toBe('address');
    for (const line of ['PUT /b', 'GET /c']) expect(matches(match, true, line)).toBe(false);
  });

  it('on headers tests for presence, absence or a glob of the value, and ignores the case of names', () => {
    const headers: Headers = [['User-Agent', 'curl/8.1']];
    expect(matches({ header: { 'user-agent': ['*curl*'] } }, true, 'GET /', headers)).toBe(true);
    expect(matches({ header: { 'user-agent': true } }, true, 'GET /', headers)).toBe(true);
    expect(matches({ header: { 'user-agent': false } }, true, 'GET /', headers)).toBe(false);
    expect(matches({ header: { 'x-env': false } }, true, 'GET /', headers)).toBe(true);
    expect(matches({ header: { 'x-env': true } }, true, 'GET /', headers)).toBe(false);
    expect(matches({ header: { 'x-env': ['*'] } }, true, 'GET /', headers)).toBe(false);
    expect(whyNot({ header: { 'x-env': ['*'] } }, true, 'GET /', headers)).toBe('header');
  });

  it('with a non-ASCII header glob is compared with the bytes that the visitor sends', () => {
    const headers: Headers = [['x-team', Buffer.from('größe').toString('latin1')]];
    expect(matches({ header: { 'x-team': ['*öß*'] } }, true, 'GET /', headers)).toBe(true);
    expect(matches({ not: { header: { 'x-team': ['größe'] } } }, true, 'GET /', headers)).toBe(false);
  });

  it('with a repeated header needs one matching value in a restricting rule, and every value in another rule', () => {
    const match: Match = { header: { 'x-env': ['test'] } };
    const twice: Headers = [
      ['x-env', 'test'],
      ['X-Env', 'live'],
    ];
    expect([matches(match, true, 'GET /', twice), matches(match, false, 'GET /', twice)]).toEqual([true, false]);
    const not = { not: match };
    expect([matches(not, true, 'GET /', twice), matches(not, false, 'GET /', twice)]).toEqual([true, false]);
  });

  it('on Host uses the host that the request was routed by, in any spelling, not the Host header', () => {
    const at = (authority: string, glob: string, field = authority): boolean[] => {
      const match: Match = { header: { host: [glob] } };
      return [match, { not: match }].flatMap((one) =>
        [true, false].map((isRestricting) =>
          matches(one, isRestricting, 'GET /', [['Host', field]], undefined, authority),
        ),
      );
    };
    const YES = [true, true, false, false];
    const NO = [false, false, true, true];
    for (const authority of [
      'admin.example.com',
      'ADMIN.example.com',
      'admin.example.com:8443',
      'admin.example.com.:80',
    ])
      expect(at(authority, 'Admin.example.com')).toEqual(YES);
    // The absolute target `GET http://admin.example.com/` overrides the Host header.
    expect(at('admin.example.com', 'admin.*', 'shop.example.com')).toEqual(YES);
    expect(at('shop.example.com', 'admin.*', 'admin.example.com')).toEqual(NO);
    expect(at('a.example.com:8443', '*:8443')).toEqual(YES);
    expect(at('a.example.com:8443', '*:80')).toEqual(NO);
    expect(matches({ header: { host: true } }, true, 'GET /')).toBe(true);
    expect(matches({ header: { host: false } }, true, 'GET /')).toBe(false);
    expect(matches({ header: { host: ['*'] } }, false, 'GET /', [], undefined, '')).toBe(false);
  });

  it('with an underscore in a header name instead of a hyphen counts for restricting rules only', () => {
    const lookalike: Headers = [['X_Env', 'test']];
    const both = (match: Match, headers = lookalike): boolean[] =>
      [true, false].map((isRestricting) => matches(match, isRestricting, 'GET /', headers));
    expect(both({ header: { 'x-env': true } })).toEqual([true, false]);
    expect(both({ header: { 'x-env': false } })).toEqual([true, false]);
    expect(both({ header: { 'x-env': ['test'] } })).toEqual([true, false]);
    expect(both({ header: { 'x-env': ['live'] } })).toEqual([false, false]);
    expect(both({ not: { header: { 'x-env': true } } })).toEqual([true, false]);
    expect(both({ header: { 'x-env': ['live'] } }, [['x-env', 'live'], ...lookalike])).toEqual([true, false]);
    expect(both({ header: { 'x-env': true } }, [['x-env', 'live'], ...lookalike])).toEqual([true, true]);
    expect(both({ header: { x_env: true } }, [['X-Env', 'test']])).toEqual([false, false]);
  });

  it.each([
    ['shop.example.com', 'shop.example.com'],
    ['shop.example.com', 'SHOP.Example.com:8443'],
    ['shop.example.com.', 'Shop.example.com.'],
    ['shop.example.com.', 'shop.example.com.:80'],
  ])('on Host ignores the Host header and the spelling of the routed host: %s, %s', (host, authority) => {
    const request = { ...requestOf('GET /', [['Host', 'other.example.com']]), host, authority };
    const isIt = (glob: string | boolean, isRestricting: boolean): boolean => {
      const match: Match = { header: { host: typeof glob === 'string' ? [glob] : glob } };
      return compileMatch(match, isRestricting).matches(request, new RequestReadings('/'));
    };
    for (const isRestricting of [true, false]) {
      for (const glob of ['shop.example.com', 'Shop.Example.*', 'shop.*', true])
        expect(isIt(glob, isRestricting)).toBe(true);
      for (const glob of ['other.example.com', '*other*', false]) expect(isIt(glob, isRestricting)).toBe(false);
    }
  });

  it('with a lower-case method still matches restricting rules, and does not match other rules', () => {
    const match: Match = { method: ['POST'] };
    expect([matches(match, true, 'post /'), matches(match, false, 'post /')]).toEqual([true, false]);
    const not = { not: match };
    expect([matches(not, true, 'post /'), matches(not, false, 'post /')]).toEqual([true, false]);
  });

  it('on addresses never matches text that is not an address', () => {
    expect(matches({ address: ['0.0.0.0/0', '::/0'] }, false, 'GET /', [], 'unknown')).toBe(false);
  });
});

describe('a match on paths with several readings', () => {
  it('needs one reading in a restricting rule, and every reading in another rule', () => {
    const match: Match = { path: ['/a/**'] };
    expect([matches(match, true, 'GET /a/..;/b'), matches(match, false, 'GET /a/..;/b')]).toEqual([true, false]);
    expect([matches(match, true, 'GET /A/b'), matches(match, false, 'GET /A/b')]).toEqual([true, false]);
    expect([matches(match, true, 'GET /a/B'), matches(match, false, 'GET /a/B')]).toEqual([true, true]);
  });

  it('is case-sensitive in rules that let requests through, and case-insensitive in restricting rules', () => {
    const match: Match = { path: ['/Admin/**'] };
    expect([matches(match, true, 'GET /admin'), matches(match, false, 'GET /admin')]).toEqual([true, false]);
    expect([matches(match, true, 'GET /Admin/x'), matches(match, false, 'GET /Admin/x')]).toEqual([true, true]);
    expect(matches({ path: ['/%41dmin'] }, true, 'GET /admin')).toBe(true);
  });

  it('treats names as equal that the Mac file system treats as equal', () => {
    const secret: Match = { path: ['/secret/**'] };
    expect([matches(secret, true, 'GET /%C5%BFecret'), matches(secret, false, 'GET /%C5%BFecret')]).toEqual([
      true,
      false,
    ]);
    const cafe: Match = { path: ['/café'] };
    expect(matches(cafe, true, 'GET /cafe%CC%81')).toBe(true);
    expect(matches({ path: ['/public/**'] }, false, 'GET /public/%C5%BF/stra%C3%9Fe')).toBe(true);
  });

  it('evaluates `not` for each reading separately', () => {
    const match: Match = { path: ['/a/**'], not: { path: ['/a/open/**'] } };
    expect(matches(match, true, 'GET /a/x')).toBe(true);
    expect(matches(match, true, 'GET /a/open/x')).toBe(false);
    // The path has two readings: below /a/open, and /a/x, which is hidden.
    expect(matches(match, true, 'GET /a/open/..;/x')).toBe(true);
    expect(matches(match, false, 'GET /a/open/..;/x')).toBe(false);
    // Without case the path is below /a/open; with case the path is not.
    expect(matches(match, true, 'GET /a/OPEN')).toBe(true);
    expect(matches(match, false, 'GET /a/OPEN')).toBe(false);
    expect(whyNot(match, true, 'GET /a/open/x')).toBe('not path');
    expect(whyNot(match, true, 'GET /b')).toBe('path');
  });

  it('with only an exception grants it only if every reading is in the exception', () => {
    const match: Match = { not: { path: ['/public/**'] } };
    expect(matches(match, true, 'GET /public/a')).toBe(false);
    expect(matches(match, true, 'GET /public/a%2fb')).toBe(false);
    for (const path of ['/public/..%2fadmin', '/public/..;/x', '/PUBLIC', '/public/a%2fb%5cc\\d;e'])
      expect(matches(match, true, `GET ${path}`)).toBe(true);
    expect(whyNot(match, true, 'GET /public/a')).toBe('not path');
  });

  it('includes an exception of an exception again', () => {
    const match: Match = { path: ['/**'], not: { path: ['/open/**'], not: { method: ['POST'] } } };
    expect(matches(match, true, 'GET /open/x')).toBe(false);
    expect(matches(match, true, 'POST /open/x')).toBe(true);
    expect(matches(match, true, 'GET /x')).toBe(true);
  });

  it('that would take too long to compare applies in restricting rules, and never in other rules', () => {
    const globs = Array.from({ length: 100 }, (_, index) => `**a*${index}**b*c**`);
    const line = `GET /${'a/'.repeat(15_000)}`;
    const begun = performance.now();
    expect([matches({ path: globs }, true, line), matches({ path: globs }, false, line)]).toEqual([true, false]);
    const long: Headers = [['x', 'a'.repeat(30_000)]];
    const header = { x: Array.from({ length: 100 }, (_, index) => `*b${index}*c*`) };
    expect([matches({ header }, true, 'GET /', long), matches({ header }, false, 'GET /', long)]).toEqual([
      true,
      false,
    ]);
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

describe('a match on tcp and udp tunnels', () => {
  it('tests only the address', () => {
    const match = compileMatch({ address: ['10.0.0.0/8'], not: { address: ['10.9.0.0/16'] } }, true);
    expect(['10.1.1.1', '10.9.1.1', '192.0.2.1', 'x'].map((address) => match.matchesAddress(address))).toEqual([
      ...[true, false, false, false],
    ]);
    expect(compileMatch(undefined, false).matchesAddress('192.0.2.1')).toBe(true);
  });
});

it('the restricting actions match the list in the contract', () => {
  expect(ACTION_NAMES.filter(restricts)).toEqual([
    ...['deny', 'allow_addresses', 'auth', 'verify_webhook', 'rate_limit', 'max_body', 'redirect', 'respond'],
  ]);
});
