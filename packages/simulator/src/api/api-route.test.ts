import { describe, expect, it } from 'vitest';
import { decodeForm } from './api-route.ts';

describe('the form decoder', () => {
  it('reads names, nested values and lists', () => {
    expect(decodeForm('a=1&b[c]=x%20y&b[d][e]=2&items[0][price]=p&items[1][price]=q&keys[]=k&keys[]=l&empty=')).toEqual(
      {
        a: '1',
        b: { c: 'x y', d: { e: '2' } },
        items: [{ price: 'p' }, { price: 'q' }],
        keys: ['k', 'l'],
        empty: '',
      },
    );
    expect(decodeForm('')).toEqual({});
  });

  it('treats `__proto__` and `constructor` as ordinary names', () => {
    const tree = decodeForm('__proto__[polluted]=1&constructor=2');
    expect(Object.getPrototypeOf(tree)).toBeNull();
    expect(Object.keys(tree)).toEqual(['__proto__', 'constructor']);
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });

  it.each(['a[=1', '[a]=1', 'a=1&a=2', 'a=1&a[b]=2', 'a[b][c][d][e][f][g]=1', 'a]=1'])('refuses %s', (text) => {
    expect(() => decodeForm(text)).toThrow();
  });

  it('rejects more than 500 parameters', () => {
    const text = Array.from({ length: 501 }, (_, index) => `p${index}=1`).join('&');
    expect(() => decodeForm(text)).toThrow(/too many/);
  });
});
