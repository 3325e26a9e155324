// How many new flows a prefix (a /24, of IPv6 a /56) may begin: so many a second, twice as many at once. The table is bounded and never searched:
// it has two generations, and a prefix that did nothing for a whole one is forgotten; by then its tokens would be all there again, or nearly.
import { RULE_LIMITS } from '../limits.ts';
import { type FlowKey, prefixKeyOf } from './flow-key.ts';

interface Bucket {
  tokens: number;
  at: number;
}

/** In seconds: what a prefix may save up. */
const BURST_SECS = 2;

export class NewFlowRate {
  /** 0: no limit. */
  readonly #perSecond: number;
  #young = new Map<FlowKey, Bucket>();
  #old = new Map<FlowKey, Bucket>();
  #turnedAt = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** false: too many. */
  take(address: string, now: number): boolean {
    if (this.#perSecond === 0) return true;
    const bucket = this.#bucketOf(prefixKeyOf(address), now);
    const burst = this.#perSecond * BURST_SECS;
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) * this.#perSecond) / 1000);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #bucketOf(key: FlowKey, now: number): Bucket {
    if (now - this.#turnedAt >= BURST_SECS * 1000) this.#turn(now);
    const known = this.#young.get(key);
    if (known !== undefined) return known;
    const bucket = this.#old.get(key) ?? { tokens: this.#perSecond * BURST_SECS, at: now };
    if (this.#young.size >= RULE_LIMITS.FLOW_PREFIXES_MAX) this.#turn(now);
    this.#old.delete(key);
    this.#young.set(key, bucket);
    return bucket;
  }

  #turn(now: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#turnedAt = now;
  }
}
