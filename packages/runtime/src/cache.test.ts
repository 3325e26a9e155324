import { describe, expect, it } from 'vitest';
import { Cache } from './cache.ts';

class Hand {
  #now = 0;

  monotonic(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}

describe('a bounded cache', () => {
  it('evicts the least recently used entry', () => {
    const cache = new Cache<string, number>({ max: 2 });
    cache.set('a', 1);
    cache.set('b', 2);
    cache.get('a');
    cache.set('c', 3);
    expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2]);
  });

  it('does not count a peek as use', () => {
    const cache = new Cache<string, number>({ max: 2 });
    cache.set('a', 1);
    cache.set('b', 2);
    expect(cache.peek('a')).toBe(1);
    cache.set('c', 3);
    expect([cache.peek('a'), cache.values(), cache.keys()]).toEqual([undefined, [2, 3], ['b', 'c']]);
  });

  it('deletes an entry by value only if the value is unchanged', () => {
    const cache = new Cache<string, object>({ max: 2 });
    const one = {};
    const two = {};
    cache.set('a', one);
    cache.set('a', two);
    cache.deleteValue('a', one);
    expect(cache.get('a')).toBe(two);
    cache.deleteValue('a', two);
    expect(cache.get('a')).toBeUndefined();
  });

  it('reports every entry that leaves exactly once', () => {
    const left: string[] = [];
    const clock = new Hand();
    const onLeave = (value: number, key: string): number => left.push(`${key}${value}`);
    const cache = new Cache<string, number>({ max: 2, clock, ttlMs: 10, onLeave });
    cache.set('a', 1);
    cache.set('a', 2);
    cache.set('b', 3);
    cache.set('c', 4);
    cache.delete('b');
    clock.advance(10);
    expect(cache.get('c')).toBeUndefined();
    cache.set('d', 5);
    cache.clear();
    expect(left).toEqual(['a1', 'a2', 'b3', 'c4', 'd5']);
  });

  it('allocates no memory for entries that do not exist', () => {
    const before = process.memoryUsage().heapUsed;
    const caches = Array.from({ length: 20 }, () => new Cache<string, number>({ max: 1_000_000 }));
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4 * 1024 * 1024);
    expect(caches).toHaveLength(20);
  });
});

describe('a cache entry with a lifetime', () => {
  it.each([0, 1, 12_345.678])('expires exactly at the end of its lifetime, with a clock that starts at %s', (start) => {
    let now = start;
    const cache = new Cache<string, number>({ max: 9, clock: { monotonic: () => now }, ttlMs: 2000 });
    cache.set('a', 1);
    now = start + 1999.99;
    expect([cache.get('a'), cache.peek('a'), cache.values()]).toEqual([1, 1, [1]]);
    now = start + 2000;
    expect([cache.peek('a'), cache.values(), cache.get('a'), cache.size]).toEqual([undefined, [], undefined, 0]);
  });

  it('is renewed by set(), but not by get()', () => {
    const clock = new Hand();
    const cache = new Cache<string, number>({ max: 9, clock, ttlMs: 10 });
    cache.set('a', 1);
    clock.advance(9);
    cache.get('a');
    clock.advance(1);
    expect(cache.get('a')).toBeUndefined();
    cache.set('a', 2);
    clock.advance(9);
    cache.set('a', 2);
    clock.advance(9);
    expect(cache.get('a')).toBe(2);
  });

  it('can have a lifetime of its own, and a lifetime of 0 removes it at once', () => {
    const clock = new Hand();
    const cache = new Cache<string, number>({ max: 9, clock });
    cache.set('a', 1, 5);
    cache.set('b', 2);
    cache.set('b', 3, 0);
    cache.set('c', 4, -1);
    cache.set('d', 5);
    clock.advance(5);
    expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key))).toEqual([undefined, undefined, undefined, 5]);
  });

  it('stays readable with last() after its end in a cache with keepsExpired', () => {
    const clock = new Hand();
    const cache = new Cache<string, number>({ max: 9, clock, ttlMs: 10, keepsExpired: true });
    cache.set('a', 1);
    clock.advance(10);
    expect([cache.get('a'), cache.peek('a'), cache.last('a'), cache.get('a')]).toEqual([
      undefined,
      undefined,
      1,
      undefined,
    ]);
    cache.deleteValue('a', 1);
    expect(cache.last('a')).toBeUndefined();
  });
});
