// A cache with an end: entries die at their time, the least used go first, and what they hold together is bounded.

interface Entry<V> {
  readonly value: V;
  readonly until: number;
  readonly chars: number;
}

export interface CacheBounds {
  readonly entriesMax: number;
  /** Of all keys and of what `set` is told of the values. */
  readonly charsMax: number;
}

export class BoundedCache<V> {
  readonly #bounds: CacheBounds;
  /** The least used first. */
  readonly #entries = new Map<string, Entry<V>>();
  #chars = 0;

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string, now: number): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (now < entry.until) {
      this.#entries.set(key, entry);
      return entry.value;
    }
    this.#chars -= entry.chars;
    return undefined;
  }

  /** `valueChars`: about what the value holds, beside its key. */
  set(key: string, value: V, until: number, valueChars = 0): void {
    this.delete(key);
    const chars = key.length + valueChars;
    this.#entries.set(key, { value, until, chars });
    this.#chars += chars;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#bounds.entriesMax && this.#chars <= this.#bounds.charsMax) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#chars -= entry.chars;
    this.#entries.delete(key);
  }
}
