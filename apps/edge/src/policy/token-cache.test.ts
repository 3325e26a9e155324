import { expect, it } from 'vitest';
import { TokenCache } from './token-cache.ts';

const BOUNDS = { entriesMax: 2, charsMax: 10_000 };
const END = 'e'.repeat(100);

it('a token is recognized only in full, under its policy, until it expires', () => {
  const known = new TokenCache<number>(BOUNDS);
  known.set('account 1', '1', `good.${END}`, 7, 1000, 0);
  expect(known.get('1', `good.${END}`, 999)).toBe(7);
  for (const text of [`evil.${END}`, `a good.${END}`, END, END.slice(60), '', `good.${END} `]) {
    expect(known.get('1', text, 0)).toBeUndefined();
  }
  expect(known.get('2', `good.${END}`, 0)).toBeUndefined();
  expect(known.get('1', `good.${END}`, 1000)).toBeUndefined();
});

it('a token with the same ending does not evict the known token', () => {
  const known = new TokenCache<number>(BOUNDS);
  known.set('account 1', '1', `good.${END}`, 7, 1000, 0);
  for (let at = 0; at < 10; at += 1) known.get('1', `evil${at}.${END}`, 0);
  expect(known.get('1', `good.${END}`, 0)).toBe(7);
});

it('short tokens are recognized, and the size of the cache is bounded', () => {
  const known = new TokenCache<number>(BOUNDS);
  for (const [at, text] of ['', 'a', 'b'].entries()) known.set('account 1', '1', text, at, 1000, 0);
  expect(['', 'a', 'b'].map((text) => known.get('1', text, 0))).toEqual([undefined, 1, 2]);
  known.set('account 1', '1', 'c', 3, 1000, 20_000);
  expect(known.get('1', 'c', 0)).toBeUndefined();
});
