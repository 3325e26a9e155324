// A bounded cache with optional expiry: lru-cache with time from a Clock. The least recently used entry is evicted first.
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface CacheOptions<K, V> {
  /** Maximum number of entries in the cache. */
  readonly max: number;
  /** Clock of the cache. Required if entries expire. */
  readonly clock?: Pick<Clock, 'monotonic'>;
  /** Lifetime of an entry. Undefined: until eviction. `set` can override it per entry. */
  readonly ttlMs?: number;
  /** True keeps an expired entry of the cache readable by `last` until eviction. */
  readonly keepsExpired?: boolean;
  /** Called for every entry that leaves: evicted, expired, deleted, or replaced by another value. */
  readonly onLeave?: (value: V, key: K) => void;
}

/**
 * lru-cache still returns an entry at the exact moment of expiry; this cache does not. The difference is shorter than the resolution of any
 * clock.
 */
const SHORTER_MS = 0.0001;

export class Cache<K extends string | object, V extends NonNullable<unknown>> {
  readonly #ttlMs: number | undefined;
  readonly #entries: LRUCache<K, V>;

  constructor({ max, clock, ttlMs, keepsExpired = false, onLeave }: CacheOptions<K, V>) {
    this.#ttlMs = ttlMs;
    this.#entries = new LRUCache<K, V>({
      // `maxSize` instead of `max`, because `max` allocates memory for all entries at once.
      maxSize: max,
      sizeCalculation: () => 1,
      // lru-cache treats the time 0 as "never set", and clocks in tests begin at 0.
      ...(clock === undefined ? {} : { perf: { now: () => clock.monotonic() + 1 } }),
      ttlResolution: 0,
      noDeleteOnStaleGet: keepsExpired,
      ...(onLeave === undefined ? {} : { dispose: onLeave }),
    });
  }

  /** Number of entries in the cache, including expired entries not accessed since. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Returns a cached value without marking it as used. */
  peek(key: K): V | undefined {
    return this.#entries.peek(key);
  }

  /** Returns a cached value even if expired, if the cache keeps expired entries. */
  last(key: K): V | undefined {
    return this.#entries.get(key, { allowStale: true });
  }

  /** Caches a value. With `ttlMs` of 0 or less, the entry has already expired: an older entry of the key is removed. */
  set(key: K, value: V, ttlMs = this.#ttlMs): void {
    if (ttlMs === undefined) this.#entries.set(key, value);
    else if (ttlMs > 0) this.#entries.set(key, value, { ttl: Math.max(SHORTER_MS, ttlMs - SHORTER_MS) });
    else this.#entries.delete(key);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  /** Deletes the key from the cache only if it has this value. */
  deleteValue(key: K, value: V): void {
    if (this.#entries.peek(key, { allowStale: true }) === value) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Keys of unexpired cache entries, least recently used first. */
  keys(): K[] {
    return [...this.#entries.rkeys()];
  }

  /** Values of unexpired cache entries, least recently used first. */
  values(): V[] {
    return [...this.#entries.rvalues()].filter((value) => value !== undefined);
  }
}
