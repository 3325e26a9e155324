// Token buckets: so many a second, and a burst at once. A single bucket, or one for each key of a bounded table.
//
// A bucket is one number: the time at which it is full again (the generic cell rate algorithm). Times are counted in parts of a millisecond, as many
// parts as tokens come in a second, and a token is 1000 of them: at whole milliseconds all sums are whole numbers, and so exact.

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

/** What has to pass until a bucket has a token. 0 or less: it has one. */
export const untilToken = (fullAt: number, now: number, token: number, burst: number): number =>
  Math.max(fullAt, now) - now - token * (burst - 1);

/** When a bucket is full again after so much was taken from it. */
export const afterTaking = (fullAt: number, now: number, taken: number): number => Math.max(fullAt, now) + taken;

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
    return Math.max(0, untilToken(this.#fullAt, now * perSecond, TOKEN, burst) / perSecond);
  }

  charge(weight: number, now: number): void {
    this.#fullAt = afterTaking(this.#fullAt, now * this.#rate.perSecond, weight * TOKEN);
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
  /** When each bucket is full again. */
  #young = new Map<K, number>();
  #old = new Map<K, number>();
  /** When the young generation began. */
  #bornAt = Number.NEGATIVE_INFINITY;
  /** The parts in which every bucket fills, also one that owes for the dearest that was charged. */
  #fillTime: number;

  constructor(rate: KeyedTokenRate) {
    this.#rate = rate;
    this.#fillTime = rate.burst * TOKEN;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** 0: a token is there. */
  waitMs(key: K, now: number): number {
    const { perSecond, burst } = this.#rate;
    const fullAt = this.#young.get(key) ?? this.#old.get(key) ?? FULL;
    return Math.max(0, untilToken(fullAt, now * perSecond, TOKEN, burst) / perSecond);
  }

  charge(key: K, weight: number, now: number): void {
    const time = now * this.#rate.perSecond;
    const taken = weight * TOKEN;
    const fullAt = this.#recall(key, time);
    this.#fillTime = Math.max(this.#fillTime, (this.#rate.burst - 1) * TOKEN + taken);
    this.#young.set(key, afterTaking(fullAt, time, taken));
  }

  /** 0: a token was there, and is taken. Else how long it takes until there is one; a key that asks stays remembered. */
  take(key: K, now: number): number {
    const { perSecond, burst } = this.#rate;
    const time = now * perSecond;
    const fullAt = this.#recall(key, time);
    const wait = untilToken(fullAt, time, TOKEN, burst);
    this.#young.set(key, wait > 0 ? fullAt : afterTaking(fullAt, time, TOKEN));
    return Math.max(0, wait / perSecond);
  }

  /** Its bucket, which is the young generation's to hold from now on. */
  #recall(key: K, time: number): number {
    if (time - this.#bornAt >= this.#fillTime) this.#grow(time);
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const fullAt = this.#old.get(key) ?? FULL;
    if (this.#young.size >= this.#rate.keys) this.#grow(time);
    this.#old.delete(key);
    return fullAt;
  }

  #grow(time: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#bornAt = time;
  }
}
