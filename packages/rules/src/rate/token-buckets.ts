// Token buckets: a limit of tokens per second, with a burst. A single bucket, or one for each key of a bounded table.
//
// A bucket is one number: the time at which it is full again (the generic cell rate algorithm). Times are counted in whole parts of a millisecond, as many
// parts as tokens come in a second, and a token is 1000 of them: sums of whole numbers are exact, and a burst has all its tokens.

export interface TokenRate {
  readonly perSecond: number;
  /** Tokens of a full bucket. */
  readonly burst: number;
}

export interface KeyedTokenRate extends TokenRate {
  /** Keys that are remembered however many others come. The table holds at most twice as many. */
  readonly keys: number;
}

/** The parts of a token at a rate that is counted by the second. */
const TOKEN = 1000;
const FULL = Number.NEGATIVE_INFINITY;

/** Clocks give fractions of a millisecond. */
const wholeParts = (now: number, perSecond: number): number => Math.round(now * perSecond);

/** Time until a bucket has a token, in parts; 0 or less if it has one now. The time of a bucket that has long been full is far below 0. */
export const untilToken = (fullAt: number, now: number, token: number, burst: number): number =>
  fullAt - now - token * (burst - 1);

/**
 * The cost of a task may be known only when it is done. So one token is enough to begin, and the rest is owed. Otherwise cheap tasks could keep an expensive
 * one waiting forever.
 */
export class TokenBucket {
  readonly #rate: TokenRate;
  #fullAt = FULL;

  constructor(rate: TokenRate) {
    this.#rate = rate;
  }

  /** Milliseconds until there is a token; 0 if there is one now. */
  waitMs(now: number): number {
    const { perSecond, burst } = this.#rate;
    return Math.max(0, untilToken(this.#fullAt, wholeParts(now, perSecond), TOKEN, burst) / perSecond);
  }

  charge(weight: number, now: number): void {
    this.#fullAt = Math.max(this.#fullAt, wholeParts(now, this.#rate.perSecond)) + weight * TOKEN;
  }

  /** Takes a token; false if there is none. */
  take(now: number): boolean {
    if (this.waitMs(now) > 0) return false;
    this.charge(1, now);
    return true;
  }
}

/**
 * The table has two generations. A key moves to the young one when it is used, and the old one is forgotten as a whole, mostly after the time in which a
 * bucket fills: whatever is forgotten then is full. Only a flood of more than `keys` keys within that time makes it forget more, and never a key that was
 * used among the last `keys`. Nothing is ever searched.
 */
export class TokenBuckets<K = string> {
  readonly #rate: KeyedTokenRate;
  #young = new Map<K, TokenBucket>();
  #old = new Map<K, TokenBucket>();
  /** When the young generation began. */
  #bornAt = Number.NEGATIVE_INFINITY;
  /** The largest weight charged so far. A bucket that owes it takes longest to fill. */
  #dearest = 1;

  constructor(rate: KeyedTokenRate) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Milliseconds until there is a token; 0 if there is one now. */
  waitMs(key: K, now: number): number {
    const bucket = this.#young.get(key) ?? this.#old.get(key);
    return bucket === undefined ? 0 : bucket.waitMs(now);
  }

  charge(key: K, weight: number, now: number): void {
    if (weight > this.#dearest) this.#dearest = weight;
    this.#recall(key, now).charge(weight, now);
  }

  /** Takes a token and returns 0, or returns the milliseconds until there is one. A key that asks is remembered either way. */
  take(key: K, now: number): number {
    const bucket = this.#recall(key, now);
    const waitMs = bucket.waitMs(now);
    if (waitMs === 0) bucket.charge(1, now);
    return waitMs;
  }

  /** The bucket of a key, which is in the young generation from now on. */
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
