import { expect, it } from 'vitest';
import { LruCache } from './lru-cache.ts';

it('lets go of what was asked for longest ago', () => {
  const cache = new LruCache<number>(2);
  cache.set('a', 1);
  cache.set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2]);
});

it('drops an entry only while it is the same', () => {
  const cache = new LruCache<object>(2);
  const [one, two] = [{}, {}];
  cache.set('a', one);
  cache.set('a', two);
  cache.drop('a', one);
  expect(cache.get('a')).toBe(two);
  cache.drop('a', two);
  expect(cache.get('a')).toBeUndefined();
});
