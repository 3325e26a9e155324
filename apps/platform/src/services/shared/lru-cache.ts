// What was looked up lately, up to a number of entries; the one that was asked for longest ago leaves first.

export class LruCache<T> {
  readonly #max: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, T>();
  /** The key that was used last; it may have been deleted since. */
  #newest: string | null = null;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    // Calls of one caller come in rows.
    if (key !== this.#newest) this.#toEnd(key, entry);
    return entry;
  }

  set(key: string, entry: T): void {
    this.#toEnd(key, entry);
    if (this.#entries.size <= this.#max) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Only while it is this very entry: a newer one stays. */
  drop(key: string, entry: T): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  #toEnd(key: string, entry: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#newest = key;
  }
}
