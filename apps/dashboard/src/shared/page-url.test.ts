import { expect, it } from 'vitest';
import { nextPath, parseSearch, returnTo, stringifySearch, textFields, webAddress } from './page-url.ts';

it('what goes into an address comes out of it as text', () => {
  const search = { token: '0123', next: '/app/tunnels?state=active&x=1', email: 'a+b@example.com' };
  expect(parseSearch(stringifySearch(search))).toEqual(search);
  expect(stringifySearch({ next: undefined, page: 2, odd: {} })).toBe('?page=2');
  expect(stringifySearch({})).toBe('');
});

it('a page takes the fields that it knows', () => {
  expect(textFields('token', 'next')({ token: 'x', other: 'y', next: 7 })).toEqual({ token: 'x' });
});

it.each(['/app/', '/app/tunnels', '/app/tunnels/x?state=active#top', '/app/keys?label=a%26b'])(
  'leads back to %s',
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
])('leads to the first page instead of %j', (asked) => {
  expect(nextPath(asked)).toBe('/app/');
});

it('what looks like another host is a path of ours', () => {
  expect(new URL(nextPath('/app//evil.example'), 'http://own.example').host).toBe('own.example');
});

it('the first page is not worth a mention', () => {
  expect([returnTo('/app/'), returnTo('/app/keys')]).toEqual([undefined, '/app/keys']);
});

it.each(['https://app.example.com/back?code=1&state=a%20b', 'http://127.0.0.1:33418/callback?error=access_denied'])(
  'a page may be left for %s',
  (address) => {
    expect(webAddress(address)).toBe(address);
  },
);

it.each(['javascript:alert(1)', ' JavaScript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '/app/', '', null])(
  'no page is left for %j',
  (address) => {
    expect(webAddress(address)).toBeNull();
  },
);
