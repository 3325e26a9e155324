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
])('%s by %j is %s', (path, prefixes, wanted) => {
  expect(rewrittenPath(path, prefixes)).toBe(wanted);
});

it.each(['/../x', '/a/../../x', '/%2e%2e/x', '/..%2fx', '/a\\..\\..\\x', '/..;v=1/x', '/a%5c..%5C..', '/.%2E'])(
  '%s does not climb out of the prefix that is put in front',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/a%5cb/../../x', '/a%2fb/../../x', '/a\\b/../../x', '/;a/../x', '/%3ba/../x', '/;a\\b/../x'])(
  '%s does not climb out either, though one of its names is two, or none, to other services',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/..%20/x', '/..%3fx', '/..%23', '/..%00/x', '/%u002e%u002e/x', '/.%0a./x', '/..%u002fx', '/a/..%09/..%0A/x'])(
  '%s does not climb out where a name or the path ends sooner, or is written as IIS has it',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBeNull();
  },
);

it.each(['/a%20b/x', '/a.b/..c', '/%u0061/x', '/a%0ab', '/caf%C3%A9.', '/x/%23'])(
  '%s is nothing of the kind, and passes to the byte',
  (path) => {
    expect(rewrittenPath(path, { add_prefix: '/public' })).toBe(`/public${path}`);
  },
);

it('what climbs only once its own prefix is gone is refused, too', () => {
  expect(rewrittenPath('/api/../x', { strip_prefix: '/api', add_prefix: '/v1' })).toBeNull();
  expect(rewrittenPath('/api/../x', { strip_prefix: '/api' })).toBe('/../x');
});
