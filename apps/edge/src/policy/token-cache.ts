// Results for long texts that visitors send with every request, such as a JWT. The cache looks up a text by its last 40 characters, and
// then compares the whole text.
import { BoundedCache, type CacheBounds } from './bounded-cache.ts';

/**
 * Number of characters at the end of a token that form its cache key. Signatures and seals are at the end, so valid tokens differ there.
 * A lookup by the whole text would take as long as the verification of a short token.
 */
const END_CHARS = 40;

interface Known<V> {
  readonly text: string;
  readonly value: V;
}

export class TokenCache<V> {
  readonly #known: BoundedCache<Known<V>>;

  constructor(bounds: CacheBounds) {
    this.#known = new BoundedCache(bounds);
  }

  /** Returns the value stored for the text. Entries of a `scope` are not found in other scopes. */
  get(scope: string, text: string, now: number): V | undefined {
    const known = this.#known.get(keyOf(scope, text), now);
    return known !== undefined && known.text === text ? known.value : undefined;
  }

  /** Stores a value for the text. `owner` is charged for the memory; `valueChars` is the approximate size of the value in characters. */
  set(owner: string, scope: string, text: string, value: V, until: number, valueChars: number): void {
    // Copy the text: a substring of a request head would keep the whole head in memory.
    const own = Buffer.from(text, 'latin1').toString('latin1');
    this.#known.set(owner, keyOf(scope, own), { text: own, value }, until, own.length + valueChars);
  }
}

const keyOf = (scope: string, text: string): string => `${scope} ${text.slice(-END_CHARS)}`;
