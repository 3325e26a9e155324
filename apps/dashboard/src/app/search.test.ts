import { expect, it } from 'vitest';
import { parseSearch, stringifySearch, textFields } from './search.ts';

it('what goes into an address comes out of it as text', () => {
  const search = { token: '0123', next: '/app/tunnels?state=active&x=1', email: 'a+b@example.com' };
  expect(parseSearch(stringifySearch(search))).toEqual(search);
  expect(stringifySearch({ next: undefined, page: 2, odd: {} })).toBe('?page=2');
  expect(stringifySearch({})).toBe('');
});

it('a page takes the fields that it knows', () => {
  expect(textFields('token', 'next')({ token: 'x', other: 'y', next: 7 })).toEqual({ token: 'x' });
});
