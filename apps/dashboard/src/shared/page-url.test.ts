import { expect, it } from 'vitest';
import { nextPath, parseSearch, returnTo, stringifySearch, textFields, webAddress } from './page-url.ts';

it('search parameters survive writing and reading as text', () => {
  const search = { token: '0123', next: '/app/tunnels?state=active&x=1', email: 'a+b@example.com' };
  expect(parseSearch(stringifySearch(search))).toEqual(search);
  expect(stringifySearch({ next: undefined, page: 2, odd: {} })).toBe('?page=2');
  expect(stringifySearch({})).toBe('');
});

it('a page reads only its known search parameters', () => {
  expect(textFields('token', 'next')({ token: 'x', other: 'y', next: 7 })).toEqual({ token: 'x' });
});

it.each(['/app/', '/app/tunnels', '/app/tunnels/x?state=active#top', '/app/keys?label=a%26b'])(
  'signing in returns to %s',
  (path) => {
    expect(nextPath(path)).toBe(path);
  },
);

it.each([
  undefined,
  7,
  '',
  '/',
  '/app',
  '/docs',
  '/application',
  'https://evil.example/app/',
  '//evil.example/app/',
  '/app/../auth/logout',
  '/app/%2e%2e/auth/logout',
  '/app\\..\\..\\evil',
  'javascript:alert(1)',
  '/app/login?next=/app/keys',
  '/app/reset-password?token=x',
])('signing in goes to the first page if asked for %j', (asked) => {
  expect(nextPath(asked)).toBe('/app/');
});

it('a return path with two slashes stays on the same host', () => {
  expect(new URL(nextPath('/app//evil.example'), 'http://own.example').host).toBe('own.example');
});

it('the return path to the first page is omitted', () => {
  expect([returnTo('/app/'), returnTo('/app/keys')]).toEqual([undefined, '/app/keys']);
});

it.each(['https://app.example.com/back?code=1&state=a%20b', 'http://127.0.0.1:33418/callback?error=access_denied'])(
  'the dashboard may redirect to %s',
  (address) => {
    expect(webAddress(address)).toBe(address);
  },
);

it.each(['javascript:alert(1)', ' JavaScript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '/app/', '', null])(
  'the dashboard does not redirect to %j',
  (address) => {
    expect(webAddress(address)).toBeNull();
  },
);
