import { expect, it } from 'vitest';
import { BoundedCache } from './bounded-cache.ts';

const ROOMY = { entriesMax: 100, charsMax: 10_000 };

it('an entry is there until its time, and not a moment longer', () => {
  const cache = new BoundedCache<string>(ROOMY);
  cache.set('a', 'x', 1000);
  expect(cache.get('a', 999)).toBe('x');
  expect(cache.get('a', 1000)).toBeUndefined();
  expect(cache.size).toBe(0);
});

it('of too many entries the least used go', () => {
  const cache = new BoundedCache<number>({ ...ROOMY, entriesMax: 2 });
  cache.set('a', 1, 1000);
  cache.set('b', 2, 1000);
  cache.get('a', 0);
  cache.set('c', 3, 1000);
  expect(['a', 'b', 'c'].map((key) => cache.get(key, 0))).toEqual([1, undefined, 3]);
});

it('what the entries hold together stays within its bound, however few they are', () => {
  const cache = new BoundedCache<number>({ ...ROOMY, charsMax: 10 });
  cache.set('aaa', 1, 1000, 5);
  cache.set('bbb', 2, 1000);
  expect(cache.size).toBe(1);
  expect(cache.get('bbb', 0)).toBe(2);
  cache.set('huge', 3, 1000, 100);
  expect(cache.size).toBe(0);
  cache.set('bbb', 4, 1000, 7);
  cache.set('bbb', 5, 1000, 7);
  expect(cache.get('bbb', 0)).toBe(5);
});
