// A cache with an end: entries die at their time, the least used go first, and what they hold together is bounded. Each entry has an owner: where all
// of it is taken, those give way first who have more than their share, so that nobody pushes out what is known of others.

interface Entry<V> {
  readonly value: V;
  until: number;
  readonly chars: number;
  readonly owner: string;
}

/** What one owner has: the least used first. */
interface Held {
  readonly keys: Set<string>;
  chars: number;
}

export interface CacheBounds {
  readonly entriesMax: number;
  /** Of all keys and of what `set` is told of the values. */
  readonly charsMax: number;
}

const OF_A_VALUE = 64;

/** About what a value holds that was read from this JSON: a list of empty tables takes many times its text. */
export const charsOfJson = (json: string): number => json.length + OF_A_VALUE * (json.match(/[,[{]/g)?.length ?? 0);

/** Who has more gives way first. */
const SHARE = 0.25;

export class BoundedCache<V> {
  readonly #bounds: CacheBounds;
  /** The least used first. */
  readonly #entries = new Map<string, Entry<V>>();
  readonly #held = new Map<string, Held>();
  /** Owners with more than their share; by that there are few. */
  readonly #large = new Set<string>();
  #chars = 0;
  /** It was used last: it stands where it belongs, and need not be moved. */
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

  /** As `get`, and what is found stays until then. */
  renew(key: string, now: number, until: number): V | undefined {
    const value = this.get(key, now);
    const newest = this.#newest;
    if (value !== undefined && newest !== null) newest.until = until;
    return value;
  }

  /** `valueChars`: about what the value holds, beside its key. */
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

  /** What goes first. There is one: something is over a bound. */
  #first(): string {
    for (const owner of this.#large) for (const key of this.#held.get(owner)?.keys ?? []) return key;
    const [oldest = ''] = this.#entries.keys();
    return oldest;
  }
}
