// Rate limits by key, with the GCRA algorithm: one number per key, exact in any time window. The number of keys is limited; keys that do
// not fit share one bucket, so a full table makes the limit stricter, never looser. Every call does a bounded part of the cleanup.

import { FairShare, untilToken } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/**
 * Maximum number of keys: for all rules of an edge (about 15 MB), for all rules of an account, and for a single rule. Each of the
 * operator's own tunnels can exceed the account limit, but never take the capacity reserved for other accounts. Keys that do not fit
 * share one bucket.
 */
export const LIMITER_KEYS = { limit: 200_000, perHolder: 50_000, perRule: 10_000 };

/** Number of keys checked for expiry: by each run of the timer (well under a millisecond), and by a request that finds its table full. */
export const SWEPT = { perLook: 5000, perTake: 16 };

export interface LimiterRates {
  readonly requests: number;
  readonly perSecs: number;
  /** Burst size: maximum number of requests that can arrive at the same moment. */
  readonly burst: number;
}

/**
 * Counts the keys of all limiters of an edge. No tenant can have more than its share, so that a flood at one tenant's limits leaves the
 * limits of other tenants as they are.
 */
export class LimiterBudget {
  readonly #keys: FairShare;
  readonly #limiters = new Set<RequestLimiter>();
  #turn: Iterator<RequestLimiter> | null = null;

  constructor(keysMax: number = LIMITER_KEYS.limit, perTenant: number = LIMITER_KEYS.perHolder) {
    this.#keys = new FairShare({ limit: keysMax, perHolder: perTenant, unlimited: isOperatorsTenant });
  }

  /** Number of keys stored by the limiters of the edge. */
  get size(): number {
    return this.#keys.taken;
  }

  /** Returns true if the tenant may store another key. */
  hasRoomFor(tenant: string): boolean {
    return this.#keys.refusal(tenant) === null;
  }

  /** Deletes keys with a full bucket, one limiter after another, and checks at most `keysMax` keys. Called by a timer. */
  sweep(nowMs: number, keysMax: number = SWEPT.perLook): void {
    let left = keysMax;
    // A look at an empty table is counted like a key.
    for (let seen = 0; seen < this.#limiters.size && left > 0; seen += 1) {
      const limiter = this.#next();
      if (limiter === null) return;
      left -= 1 + limiter.sweep(nowMs, left);
    }
  }

  /** Registers a limiter. Called only by limiters. */
  enter(limiter: RequestLimiter): void {
    this.#limiters.add(limiter);
  }

  leave(limiter: RequestLimiter): void {
    this.#limiters.delete(limiter);
  }

  take(tenant: string): void {
    this.#keys.take(tenant);
  }

  give(tenant: string, count: number): void {
    this.#keys.give(tenant, count);
  }

  #next(): RequestLimiter | null {
    const next = this.#turn?.next();
    if (next !== undefined && next.done !== true) return next.value;
    this.#turn = this.#limiters.values();
    const first = this.#turn.next();
    return first.done === true ? null : first.value;
  }
}

/**
 * Rate limiter of a rule. The unit of time is a millisecond divided by the number of requests in the rule, so that sums are whole numbers
 * and exact.
 */
export class RequestLimiter {
  readonly #budget: LimiterBudget;
  /** Tenant charged for the keys of the rate limiter. */
  readonly #tenant: string;
  readonly #keysMax: number;
  /** For each key, the time at which its bucket is full again. */
  readonly #times = new Map<string, number>();
  /** Time at which the bucket shared by keys without an entry is full again. */
  #sharedTime = 0;
  /** Position in the table of keys at which the last sweep stopped. */
  #hand: Iterator<[string, number]> | null = null;
  /** Time of the first call. Times are relative to it, because smaller numbers stay exact at higher request rates. */
  #epochMs: number | null = null;
  #parts = 1;

  constructor(budget: LimiterBudget, tenant: string, keysMax: number = LIMITER_KEYS.perRule) {
    this.#budget = budget;
    this.#tenant = tenant;
    this.#keysMax = keysMax;
    budget.enter(this);
  }

  get size(): number {
    return this.#times.size;
  }

  /** Returns true if the limiter can be deleted without effect: it has no keys, and the shared bucket is full again. */
  isIdle(nowMs: number): boolean {
    return this.#times.size === 0 && this.#sharedTime <= (nowMs - (this.#epochMs ?? nowMs)) * this.#parts;
  }

  /**
   * Counts a request and returns null if it is within the limit. Otherwise returns the whole seconds until the next request is allowed,
   * and counts nothing.
   */
  take(key: string, { requests, perSecs, burst }: LimiterRates, nowMs: number): number | null {
    this.#epochMs ??= nowMs;
    this.#parts = requests;
    // Round to whole units: clocks return fractions of a millisecond, and the rounding error of the sum would reject the last request of
    // a burst.
    const now = Math.round((nowMs - this.#epochMs) * requests);
    const token = perSecs * 1000;
    const known = this.#times.get(key);
    const isShared = known === undefined && !this.#makeRoom(nowMs);
    // A new key may have used the shared bucket before, so its own bucket starts at the level of the shared bucket. If the clock was set
    // back, no key waits longer than for a full bucket.
    const fullAt = Math.min(Math.max(known ?? this.#sharedTime, now), now + token * burst);
    const wait = untilToken(fullAt, now, token, burst);
    if (wait > 0) return Math.max(1, Math.ceil(wait / requests / 1000));
    const time = fullAt + token;
    if (isShared) this.#sharedTime = time;
    else if (known === undefined) this.#add(key, time);
    else this.#times.set(key, time);
    return null;
  }

  /** Deletes keys with a full bucket, starting where the previous call stopped. Returns the number of keys checked. */
  sweep(nowMs: number, keysMax: number = SWEPT.perLook): number {
    const now = (nowMs - (this.#epochMs ?? nowMs)) * this.#parts;
    const count = Math.min(keysMax, this.#times.size);
    for (let seen = 0; seen < count; seen += 1) {
      const entry = this.#next();
      if (entry === null) return seen;
      if (entry[1] > now) continue;
      this.#times.delete(entry[0]);
      this.#budget.give(this.#tenant, 1);
    }
    return count;
  }

  /** Frees the keys for other limiters. Called when the policy of the rule ends. */
  close(): void {
    this.#budget.leave(this);
    this.#budget.give(this.#tenant, this.#times.size);
    this.#times.clear();
  }

  /** Stores a copy of the key: a key is a substring of a request head, and would keep the whole head in memory. */
  #add(key: string, time: number): void {
    this.#times.set(key.split('').join(''), time);
    this.#budget.take(this.#tenant);
  }

  #makeRoom(nowMs: number): boolean {
    if (this.#hasRoom()) return true;
    this.sweep(nowMs, SWEPT.perTake);
    if (this.#times.size < this.#keysMax && !this.#budget.hasRoomFor(this.#tenant))
      this.#budget.sweep(nowMs, SWEPT.perTake);
    return this.#hasRoom();
  }

  #hasRoom(): boolean {
    return this.#times.size < this.#keysMax && this.#budget.hasRoomFor(this.#tenant);
  }

  #next(): [string, number] | null {
    const next = this.#hand?.next();
    if (next !== undefined && next.done !== true) return next.value;
    this.#hand = this.#times.entries();
    const first = this.#hand.next();
    return first.done === true ? null : first.value;
  }
}
