// What is known of long texts that visitors send with each request, such as a JWT: found by their ends, and known only where they are the same whole.
import { BoundedCache, type CacheBounds } from './bounded-cache.ts';

/** Signatures and seals stand at the end: no two good texts have the same one. To look for all of a text takes as long as to check a small one. */
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

  /** `scope`: what is known in one is unknown in others. */
  get(scope: string, text: string, now: number): V | undefined {
    const known = this.#known.get(keyOf(scope, text), now);
    return known !== undefined && known.text === text ? known.value : undefined;
  }

  /** `owner`: whose share of the memory it takes; `valueChars`: about what the value holds. */
  set(owner: string, scope: string, text: string, value: V, until: number, valueChars: number): void {
    // A copy: what is cut out of a head would keep all of it.
    const own = Buffer.from(text, 'latin1').toString('latin1');
    this.#known.set(owner, keyOf(scope, own), { text: own, value }, until, own.length + valueChars);
  }
}

const keyOf = (scope: string, text: string): string => `${scope} ${text.slice(-END_CHARS)}`;
