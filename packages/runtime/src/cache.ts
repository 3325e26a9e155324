// Values by key, up to a number of entries and, if wanted, for a limited time: lru-cache, with time from a Clock. The entry that was used longest ago is
// evicted first.
import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

export interface CacheOptions<K, V> {
  /** Maximum number of entries. */
  readonly max: number;
  /** Needed where entries expire. */
  readonly clock?: Pick<Clock, 'monotonic'>;
  /** How long an entry is returned after it was set. Absent: until it is evicted. `set` can give each entry a time of its own. */
  readonly ttlMs?: number;
  /** An expired entry stays readable by `last`, until it is evicted. */
  readonly keepsExpired?: boolean;
  /** Called for every entry that leaves: evicted, expired, deleted, or replaced by another value. */
  readonly onLeave?: (value: V, key: K) => void;
}

/** lru-cache still returns an entry at the very moment at which it expires; ours has ended by then. No clock has steps as short as this one. */
const SHORTER_MS = 0.0001;

export class Cache<K extends string | object, V extends NonNullable<unknown>> {
  readonly #ttlMs: number | undefined;
  readonly #entries: LRUCache<K, V>;

  constructor({ max, clock, ttlMs, keepsExpired = false, onLeave }: CacheOptions<K, V>) {
    this.#ttlMs = ttlMs;
    this.#entries = new LRUCache<K, V>({
      // Instead of `max`, which allocates the memory of all entries at once.
      maxSize: max,
      sizeCalculation: () => 1,
      // To lru-cache the time 0 means "never set", and a clock of tests begins there.
      ...(clock === undefined ? {} : { perf: { now: () => clock.monotonic() + 1 } }),
      ttlResolution: 0,
      noDeleteOnStaleGet: keepsExpired,
      ...(onLeave === undefined ? {} : { dispose: onLeave }),
    });
  }

  /** Entries, including expired ones that were not asked for since. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** The value without counting as a use of it. */
  peek(key: K): V | undefined {
    return this.#entries.peek(key);
  }

  /** The value even if it has expired, where the cache keeps those. */
  last(key: K): V | undefined {
    return this.#entries.get(key, { allowStale: true });
  }

  /** `ttlMs` of 0 or less: the entry has expired already, and an older one of that key is removed. */
  set(key: K, value: V, ttlMs = this.#ttlMs): void {
    if (ttlMs === undefined) this.#entries.set(key, value);
    else if (ttlMs > 0) this.#entries.set(key, value, { ttl: Math.max(SHORTER_MS, ttlMs - SHORTER_MS) });
    else this.#entries.delete(key);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  /** Deletes this very value; a newer value of the same key stays. */
  deleteValue(key: K, value: V): void {
    if (this.#entries.peek(key, { allowStale: true }) === value) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Keys of entries that have not expired, the one that was used longest ago first. */
  keys(): K[] {
    return [...this.#entries.rkeys()];
  }

  /** The values in the same order. */
  values(): V[] {
    return [...this.#entries.rvalues()].filter((value) => value !== undefined);
  }
}
