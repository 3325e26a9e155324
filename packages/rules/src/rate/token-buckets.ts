// Token buckets: so many a second, and a burst at once. A single bucket, or one for each key of a bounded table.
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

/** What has to pass until a bucket has a token. 0 or less: it has one. A bucket that is full may have been so for long. */
export const untilToken = (fullAt: number, now: number, token: number, burst: number): number =>
  fullAt - now - token * (burst - 1);

/**
 * What something costs may be known only when it is done, so one token is enough to begin and the rest is owed. The dear is then never kept waiting for
 * ever by the cheap.
 */
export class TokenBucket {
  readonly #rate: TokenRate;
  #fullAt = FULL;

  constructor(rate: TokenRate) {
    this.#rate = rate;
  }

  /** 0: a token is there. */
  waitMs(now: number): number {
    const { perSecond, burst } = this.#rate;
    return Math.max(0, untilToken(this.#fullAt, wholeParts(now, perSecond), TOKEN, burst) / perSecond);
  }

  charge(weight: number, now: number): void {
    this.#fullAt = Math.max(this.#fullAt, wholeParts(now, this.#rate.perSecond)) + weight * TOKEN;
  }

  /** true: a token was there, and is taken. */
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
  /** The dearest that was charged. A bucket that owes for it takes longest to fill. */
  #dearest = 1;

  constructor(rate: KeyedTokenRate) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** 0: a token is there. */
  waitMs(key: K, now: number): number {
    const bucket = this.#young.get(key) ?? this.#old.get(key);
    return bucket === undefined ? 0 : bucket.waitMs(now);
  }

  charge(key: K, weight: number, now: number): void {
    if (weight > this.#dearest) this.#dearest = weight;
    this.#recall(key, now).charge(weight, now);
  }

  /** 0: a token was there, and is taken. Else how long it takes until there is one; a key that asks stays remembered. */
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
