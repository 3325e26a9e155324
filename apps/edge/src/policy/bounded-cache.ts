// A cache with limits for the number and the total size of its entries. Entries expire; when the cache is full, the least recently used
// entry is evicted first. Every entry has an owner: owners with more than their share lose entries first, so that no owner can evict the
// entries of others.

interface Entry<V> {
  readonly value: V;
  until: number;
  readonly chars: number;
  readonly owner: string;
}

/** Entries of an owner; the least recently used key comes first. */
interface Held {
  readonly keys: Set<string>;
  chars: number;
}

export interface CacheBounds {
  readonly entriesMax: number;
  /** Maximum total characters: lengths of the keys plus the value sizes passed to `set`. */
  readonly charsMax: number;
}

const OF_A_VALUE = 64;

/**
 * Estimates the memory of a value parsed from the JSON text, in characters. Counts 64 for every element, because an array of empty
 * objects needs many times the memory of its text.
 */
export const charsOfJson = (json: string): number => json.length + OF_A_VALUE * (json.match(/[,[{]/g)?.length ?? 0);

/** Share of the cache above which an owner loses entries first. */
const SHARE = 0.25;

export class BoundedCache<V> {
  readonly #bounds: CacheBounds;
  /** Entries by key; the least recently used entry comes first. */
  readonly #entries = new Map<string, Entry<V>>();
  readonly #held = new Map<string, Held>();
  /** Owners with more than their share of the cache. With a share of a quarter there are only a few. */
  readonly #large = new Set<string>();
  #chars = 0;
  /** The most recently used entry. Its position in the maps is already the last, so `get` need not move it. */
  #newest: Entry<V> | null = null;

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string, now: number): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (now >= entry.until) {
      this.delete(key);
      return undefined;
    }
    if (entry !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      const keys = this.#held.get(entry.owner)?.keys;
      if (keys?.delete(key) === true) keys.add(key);
      this.#newest = entry;
    }
    return entry.value;
  }

  /** Like `get`, and sets a new expiry time for the entry found. */
  renew(key: string, now: number, until: number): V | undefined {
    const value = this.get(key, now);
    const newest = this.#newest;
    if (value !== undefined && newest !== null) newest.until = until;
    return value;
  }

  /** Stores a value. `valueChars` is the approximate size of the value in characters, without the key. */
  set(owner: string, key: string, value: V, until: number, valueChars = 0): void {
    this.delete(key);
    const entry: Entry<V> = { value, until, chars: key.length + valueChars, owner };
    this.#entries.set(key, entry);
    this.#newest = entry;
    const held = this.#held.get(owner) ?? { keys: new Set(), chars: 0 };
    this.#held.set(owner, held);
    held.keys.add(key);
    this.#count(owner, held, entry.chars);
    while (this.#entries.size > this.#bounds.entriesMax || this.#chars > this.#bounds.charsMax) {
      this.delete(this.#first());
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    if (entry === this.#newest) this.#newest = null;
    const held = this.#held.get(entry.owner) as Held;
    held.keys.delete(key);
    this.#count(entry.owner, held, -entry.chars);
    if (held.keys.size === 0) this.#held.delete(entry.owner);
  }

  #count(owner: string, held: Held, chars: number): void {
    this.#chars += chars;
    held.chars += chars;
    const { entriesMax, charsMax } = this.#bounds;
    if (held.keys.size > entriesMax * SHARE || held.chars > charsMax * SHARE) this.#large.add(owner);
    else this.#large.delete(owner);
  }

  /** Returns the key to evict next. Called only while the cache is over a limit, so there is at least one entry. */
  #first(): string {
    for (const owner of this.#large) for (const key of this.#held.get(owner)?.keys ?? []) return key;
    const [oldest = ''] = this.#entries.keys();
    return oldest;
  }
}
