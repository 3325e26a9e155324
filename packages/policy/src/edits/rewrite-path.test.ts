import { expect, it } from 'vitest';
import { rewrittenPath } from './rewrite-path.ts';

it.each([
  ['/api/v1/x?q=1', { strip_prefix: '/api' }, '/v1/x?q=1'],
  ['/api', { strip_prefix: '/api' }, '/'],
  ['/api?x', { strip_prefix: '/api/' }, '/?x'],
  ['/apis/x', { strip_prefix: '/api' }, '/apis/x'],
  ['/x', { add_prefix: '/v2/' }, '/v2/x'],
  ['/', { add_prefix: '/v2' }, '/v2/'],
  ['/api/x', { strip_prefix: '/api', add_prefix: '/v2' }, '/v2/x'],
  ['/api', { strip_prefix: '/api', add_prefix: '/v2' }, '/v2'],
  ['/api?q=1', { strip_prefix: '/api', add_prefix: '/v2' }, '/v2?q=1'],
  ['/api/', { strip_prefix: '/api', add_prefix: '/v2' }, '/v2/'],
  ['/api/?q=1', { strip_prefix: '/api/', add_prefix: '/v2/' }, '/v2/?q=1'],
  ['/api?q=1', { strip_prefix: '/api', add_prefix: '/' }, '/?q=1'],
  ['/', { strip_prefix: '/', add_prefix: '/v2' }, '/v2/'],
  ['/api//evil.example/x', { strip_prefix: '/api' }, '/evil.example/x'],
  ['/api/\\evil', { strip_prefix: '/api' }, '/evil'],
  ['/a%2Fb', { add_prefix: '/v2' }, '/v2/a%2Fb'],
  ['/a/../b', { add_prefix: '/v2' }, '/v2/a/../b'],
  ['/..a/b..', { add_prefix: '/v2' }, '/v2/..a/b..'],
  ['*', { add_prefix: '/v2' }, '*'],
])('the path %s rewritten by %j is %s', (path, prefixes, wanted) => {
  expect(rewrittenPath(path, prefixes)).toBe(wanted);
});

it.each(['/../x', '/a/../../x', '/%2e%2e/x', '/..%2fx', '/a\\..\\..\\x', '/..;v=1/x', '/a%5c..%5C..', '/.%2E'])(
  'a path cannot climb out of the added prefix: %s is refused',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/a%5cb/../../x', '/a%2fb/../../x', '/a\\b/../../x', '/;a/../x', '/%3ba/../x', '/;a\\b/../x'])(
  'a path cannot climb out of the added prefix where services split its segments differently: %s is refused',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/..%20/x', '/..%3fx', '/..%23', '/..%00/x', '/%u002e%u002e/x', '/.%0a./x', '/..%u002fx', '/a/..%09/..%0A/x'])(
  'a path cannot climb out of the added prefix if segments are cut early or encoded as in IIS: %s is refused',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/a%20b/x', '/a.b/..c', '/%u0061/x', '/a%0ab', '/caf%C3%A9.', '/x/%23'])(
  'a harmless path is passed on unchanged: %s',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBe(`/public${path}`);
  },
);

it('a path that climbs out only after its own prefix is stripped is refused if a prefix is added', () => {
  expect(rewrittenPath('/api/../x', { strip_prefix: '/api', add_prefix: '/v1' })).toBeNull();
  expect(rewrittenPath('/api/../x', { strip_prefix: '/api' })).toBe('/../x');
});
