import { expect, it } from 'vitest';
import { BoundedCache } from './bounded-cache.ts';

const ROOMY = { entriesMax: 100, charsMax: 10_000 };

it('an entry is returned until it expires', () => {
  const cache = new BoundedCache<string>(ROOMY);
  cache.set('o', 'a', 'x', 1000);
  expect(cache.get('a', 999)).toBe('x');
  expect(cache.get('a', 1000)).toBeUndefined();
  expect(cache.size).toBe(0);
});

it('a renewed entry expires later, and an expired entry cannot be renewed', () => {
  const cache = new BoundedCache<string>(ROOMY);
  cache.set('account 1', 'a', 'x', 1000);
  cache.set('account 1', 'b', 'y', 1000);
  expect(cache.renew('a', 999, 2000)).toBe('x');
  expect(cache.renew('b', 1000, 2000)).toBeUndefined();
  expect(cache.renew('nobody', 0, 2000)).toBeUndefined();
  expect([cache.get('a', 1999), cache.get('b', 0)]).toEqual(['x', undefined]);
  expect(cache.get('a', 2000)).toBeUndefined();
});

it('the least recently used entries are evicted when there are too many', () => {
  const cache = new BoundedCache<number>({ ...ROOMY, entriesMax: 2 });
  cache.set('o', 'a', 1, 1000);
  cache.set('o', 'b', 2, 1000);
  cache.get('a', 0);
  cache.set('o', 'c', 3, 1000);
  expect(['a', 'b', 'c'].map((key) => cache.get(key, 0))).toEqual([1, undefined, 3]);
});

it('the total size of the entries is bounded, even for few entries', () => {
  const cache = new BoundedCache<number>({ ...ROOMY, charsMax: 10 });
  cache.set('o', 'aaa', 1, 1000, 5);
  cache.set('o', 'bbb', 2, 1000);
  expect(cache.size).toBe(1);
  expect(cache.get('bbb', 0)).toBe(2);
  cache.set('o', 'huge', 3, 1000, 100);
  expect(cache.size).toBe(0);
  cache.set('o', 'bbb', 4, 1000, 7);
  cache.set('o', 'bbb', 5, 1000, 7);
  expect(cache.get('bbb', 0)).toBe(5);
});

it('an owner with too many entries evicts only entries of the same owner', () => {
  const cache = new BoundedCache<number>(ROOMY);
  for (let at = 0; at < 10; at += 1) cache.set('shop', `shop ${at}`, at, 1000);
  for (let at = 0; at < 1000; at += 1) {
    cache.set('evil', `evil ${at}`, at, 1000);
    // Recent use of its own entries gives the flooding owner no right to evict entries of another owner.
    for (let used = Math.max(0, at - 50); used < at; used += 1) cache.get(`evil ${used}`, 0);
  }
  expect(cache.size).toBe(100);
  expect(Array.from({ length: 10 }, (_, at) => cache.get(`shop ${at}`, 0))).not.toContain(undefined);
  expect(cache.get('evil 999', 0)).toBe(999);
});

it('a single owner can fill the cache, and entries of another owner added later stay', () => {
  const cache = new BoundedCache<number>({ entriesMax: 100, charsMax: 1000 });
  for (let at = 10; at < 30; at += 1) cache.set('evil', `${at}`, at, 1000, 48);
  expect(cache.size).toBe(20);
  for (let at = 40; at < 44; at += 1) cache.set('shop', `${at}`, at, 1000, 48);
  for (let at = 50; at < 99; at += 1) cache.set('evil', `${at}`, at, 1000, 48);
  expect([40, 41, 42, 43].map((at) => cache.get(`${at}`, 0))).toEqual([40, 41, 42, 43]);
  expect(cache.size).toBe(20);
});
