import { expect, it } from 'vitest';
import { requestOf } from '../policy.fixture.ts';
import { type FillRoom, headerValue, parseRedirectTemplate, parseTemplate, redirectTarget } from './placeholders.ts';

const room = (fillLeft = 1000): FillRoom => ({ fillLeft });

const target = (to: string, path: string, user = ''): string | null =>
  redirectTarget(parseRedirectTemplate(to), requestOf({ path }), user, room());

it('each placeholder is replaced by the value that it names', () => {
  const all = parseTemplate('{address} {host} {path} {query} {user} {request_id} {other}');
  expect(headerValue(all, requestOf({ path: '/a/b?x=1?y' }), 'anna', room())).toBe(
    '192.0.2.1 shop.example.com /a/b ?x=1?y anna req_1 {other}',
  );
  expect(headerValue(parseTemplate('[{query}{user}]'), requestOf({ path: '/a' }), '', room())).toBe('[]');
});

it('a placeholder value cannot end a header line', () => {
  expect(headerValue(parseTemplate('{user}'), requestOf(), 'a\r\nSet-Cookie: x\0', room())).toBe(
    'a%0D%0ASet-Cookie: x%00',
  );
  expect(headerValue(parseTemplate('{user}'), requestOf(), 'ü', room())).toBe('\xc3\xbc');
});

it('two user names that differ only in blanks or control characters stay different in a header', () => {
  const all = ['anna', ' anna', 'anna ', 'an\0na', '\tanna', 'anna\u00a0'];
  const names = all.map((user) =>
    requestOf({ headers: [['x', headerValue(parseTemplate('{user}'), requestOf(), user, room()) ?? '']] }),
  );
  expect(new Set(names.map(({ headers }) => headers[0]?.value)).size).toBe(all.length);
});

it.each([
  ['https://{host}{path}{query}', '/a?b=1', 'https://shop.example.com/a?b=1'],
  ['https://example.org', '/a', 'https://example.org'],
  ['https://example.org{query}', '/a?b', 'https://example.org?b'],
  ['/new{path}', '/a', '/new/a'],
  ['/new{path}', '*', '/new/'],
])('the redirect template %s with the request path %s gives %s', (to, path, wanted) => {
  expect(target(to, path)).toBe(wanted);
});

it.each([
  ['/{path}', '/evil.example', '/evil.example'],
  ['/{path}', '/\\evil.example', '/evil.example'],
  ['{path}', '//evil.example', '/evil.example'],
  ['/{path}', '/\\/\\evil.example', '/evil.example'],
])('the redirect template %s with the request path %s stays on this host', (to, path, wanted) => {
  expect(target(to, path)).toBe(wanted);
});

it('a user name in a redirect cannot become part of the host', () => {
  expect(target('https://example.org{user}', '/', '.evil.example')).toBe('https://example.org/.evil.example');
  expect(target('https://example.org{user}', '/', '@evil.example')).toBe('https://example.org/%40evil.example');
  expect(target('/u/{user}', '/', '../\r\nx\ud800')).toBe('/u/..%2F%0D%0Ax');
});

it('all placeholders share one budget, and a text that exceeds it is not filled', () => {
  const shared = room(10);
  const request = requestOf({ path: '/abc' });
  expect(headerValue(parseTemplate('long constant text {path}{path}'), request, '', shared)).toBe(
    'long constant text /abc/abc',
  );
  expect(redirectTarget(parseRedirectTemplate('/new{path}'), request, '', shared)).toBeNull();
  expect(headerValue(parseTemplate('{path}'.repeat(1000)), request, '', room(100))).toBeNull();
  expect(headerValue(parseTemplate('as it is'), request, '', room(0))).toBe('as it is');
});
