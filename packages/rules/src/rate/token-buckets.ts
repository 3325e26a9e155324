// Token buckets: a limit of tokens per second, with a burst. A single bucket, or a bucket per key in a bounded table.
//
// A bucket is a single number: the time at which it is full again (the generic cell rate algorithm). Times are counted in whole parts of a
// millisecond: `perSecond` parts per millisecond, so that a token takes 1000 parts. Sums of whole numbers are exact, so a burst contains all
// its tokens.

export interface TokenRate {
  readonly perSecond: number;
  /** Number of tokens in a full bucket. */
  readonly burst: number;
}

export interface KeyedTokenRate extends TokenRate {
  /** Number of keys that are always remembered. The table holds at most twice as many. */
  readonly keys: number;
}

/** Number of time parts that one token takes. */
const TOKEN = 1000;
const FULL = Number.NEGATIVE_INFINITY;

/** Converts milliseconds to time parts, rounded to whole parts, because clocks return fractions of a millisecond. */
const wholeParts = (now: number, perSecond: number): number => Math.round(now * perSecond);

/** Time until a bucket has a token, in parts; 0 or less if it has a token now. The value of a long-full bucket is far below 0. */
export const untilToken = (fullAt: number, now: number, token: number, burst: number): number =>
  fullAt - now - token * (burst - 1);

/**
 * A single bucket. A task may begin with one token and owe the rest, because its cost may be known only at the end. Otherwise cheap tasks
 * could keep an expensive task waiting forever.
 */
export class TokenBucket {
  readonly #rate: TokenRate;
  #fullAt = FULL;

  constructor(rate: TokenRate) {
    this.#rate = rate;
  }

  /** Milliseconds until there is a token; 0 if there is a token now. */
  waitMs(now: number): number {
    const { perSecond, burst } = this.#rate;
    return Math.max(0, untilToken(this.#fullAt, wholeParts(now, perSecond), TOKEN, burst) / perSecond);
  }

  charge(weight: number, now: number): void {
    this.#fullAt = Math.max(this.#fullAt, wholeParts(now, this.#rate.perSecond)) + weight * TOKEN;
  }

  /** Takes a token from the bucket. Returns false if there is none. */
  take(now: number): boolean {
    if (this.waitMs(now) > 0) return false;
    this.charge(1, now);
    return true;
  }
}

/**
 * Buckets in two generations. A used key moves to the young generation, and the old generation is dropped as a whole, usually after the
 * time in which a bucket fills, when all dropped buckets are full. Only a flood of more than `keys` keys within that time drops more, but
 * never one of the last `keys` used keys. No operation searches.
 */
export class TokenBuckets<K = string> {
  readonly #rate: KeyedTokenRate;
  #young = new Map<K, TokenBucket>();
  #old = new Map<K, TokenBucket>();
  /** Start time of the young generation of buckets. All buckets used since then are in it. */
  #bornAt = Number.NEGATIVE_INFINITY;
  /** Largest weight charged so far. A bucket with this debt takes longest to fill. */
  #dearest = 1;

  constructor(rate: KeyedTokenRate) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Milliseconds until there is a token; 0 if there is a token now. */
  waitMs(key: K, now: number): number {
    const bucket = this.#young.get(key) ?? this.#old.get(key);
    return bucket === undefined ? 0 : bucket.waitMs(now);
  }

  charge(key: K, weight: number, now: number): void {
    if (weight > this.#dearest) this.#dearest = weight;
    this.#recall(key, now).charge(weight, now);
  }

  /** Takes a token and returns 0, or returns the milliseconds until there is a token. The key is remembered either way. */
  take(key: K, now: number): number {
    const bucket = this.#recall(key, now);
    const waitMs = bucket.waitMs(now);
    if (waitMs === 0) bucket.charge(1, now);
    return waitMs;
  }

  /** Returns the bucket of a key and moves it to the young generation. */
  #recall(key: K, now: number): TokenBucket {
    const { perSecond, burst, keys } = this.#rate;
    if ((now - this.#bornAt) * perSecond >= (burst + this.#dearest - 1) * TOKEN) this.#grow(now);
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const bucket = this.#old.get(key) ?? new TokenBucket(this.#rate);
    if (this.#young.size >= keys) this.#grow(now);
    this.#old.delete(key);
    this.#young.set(key, bucket);
    return bucket;
  }

  #grow(now: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#bornAt = now;
  }
}
