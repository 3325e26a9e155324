// How fast the frames of one control connection are taken up: tokens of its own, tokens that the connections of its account share, and so
// many frames a turn. Who has used them up is not read for a while; what it costs, it costs the sender.

export interface BucketRules {
  readonly perSecond: number;
  readonly burst: number;
}

export interface FramePaceRules {
  readonly connection: BucketRules;
  readonly account: BucketRules;
  /** Frames of one connection in one turn of the event loop; a long one counts for several. */
  readonly perTurn: number;
  /** The shortest pause: a thousand connections that wait must not become a flood of timers. */
  readonly pauseMinMs: number;
}

export type FrameVerdict =
  | { readonly kind: 'take' }
  | { readonly kind: 'next-turn' }
  | { readonly kind: 'wait'; readonly ms: number };

const TAKE: FrameVerdict = { kind: 'take' };
const NEXT_TURN: FrameVerdict = { kind: 'next-turn' };

/**
 * What a frame costs is known when it is read, so one token is enough to begin and the rest is owed. A dear frame is then never kept
 * waiting for ever by cheap ones.
 */
export class TokenBucket {
  readonly #rules: BucketRules;
  #tokens: number;
  #at: number;

  constructor(rules: BucketRules, now: number) {
    this.#rules = rules;
    this.#tokens = rules.burst;
    this.#at = now;
  }

  waitMs(now: number): number {
    this.#refill(now);
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) * 1000) / this.#rules.perSecond;
  }

  charge(weight: number, now: number): void {
    this.#refill(now);
    this.#tokens -= weight;
  }

  isFull(now: number): boolean {
    this.#refill(now);
    return this.#tokens >= this.#rules.burst;
  }

  #refill(now: number): void {
    const { perSecond, burst } = this.#rules;
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) * perSecond) / 1000);
    this.#at = now;
  }
}

/** The buckets of accounts. They outlive connections, or each new connection would bring a new one along. */
export class AccountBuckets {
  readonly #rules: BucketRules;
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #max: number;

  /** `max` is the most buckets that are kept: the oldest makes room for the next. A table without `max` relies on its owner to call dropFull(). */
  constructor(rules: BucketRules, max = Number.POSITIVE_INFINITY) {
    this.#rules = rules;
    this.#max = max;
  }

  get size(): number {
    return this.#buckets.size;
  }

  waitMs(account: string, now: number): number {
    return this.#buckets.get(account)?.waitMs(now) ?? 0;
  }

  charge(account: string, weight: number, now: number): void {
    let bucket = this.#buckets.get(account);
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#rules, now);
      if (this.#buckets.size >= this.#max) {
        const [oldest = account] = this.#buckets.keys();
        this.#buckets.delete(oldest);
      }
      this.#buckets.set(account, bucket);
    }
    bucket.charge(weight, now);
  }

  /** A full bucket is as good as none: what stays is what accounts have used in the last seconds. */
  dropFull(now: number): void {
    for (const [account, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(account);
  }
}

export class FramePace {
  readonly #rules: FramePaceRules;
  readonly #accounts: AccountBuckets;
  readonly #own: TokenBucket;
  #account: string | null = null;
  #inTurn = 0;

  constructor(rules: FramePaceRules, accounts: AccountBuckets, now: number) {
    this.#rules = rules;
    this.#accounts = accounts;
    this.#own = new TokenBucket(rules.connection, now);
  }

  /** Whom its frames cost as well, from now on: strangers their network, a client its account. null: nobody. */
  shareWith(account: string | null): void {
    this.#account = account;
  }

  /** Whether the next frame may be read. */
  next(now: number): FrameVerdict {
    const shared = this.#account === null ? 0 : this.#accounts.waitMs(this.#account, now);
    const ms = Math.max(this.#own.waitMs(now), shared);
    if (ms > 0) return { kind: 'wait', ms: Math.max(ms, this.#rules.pauseMinMs) };
    return this.#inTurn < this.#rules.perTurn ? TAKE : NEXT_TURN;
  }

  /** `inTurn`: for how many frames of a turn it counts. */
  charge(weight: number, now: number, inTurn = 1): void {
    this.#inTurn += inTurn;
    this.#own.charge(weight, now);
    if (this.#account !== null) this.#accounts.charge(this.#account, weight, now);
  }

  turnOver(): void {
    this.#inTurn = 0;
  }
}
