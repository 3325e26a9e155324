// How often each key of a rule may come: GCRA, one number a key, exact in any window. Tables are bounded; a key that finds no room shares one
// bucket with all others that found none, so a full table limits more, never less. Each call does a bounded part of the tidying.

import { FairShare, untilToken } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/**
 * Keys of all rules of an edge, some 15 MB; of all rules of one account; and of one rule. The operator's own tunnels may have more, each for itself, but
 * never what is left for others. Keys that find no room share one bucket.
 */
export const LIMITER_KEYS = { limit: 200_000, perHolder: 50_000, perRule: 10_000 };

/** Keys that one look of the timer goes through, well under a millisecond, and that a request goes through which finds a full table. */
export const SWEPT = { perLook: 5000, perTake: 16 };

export interface LimiterRates {
  readonly requests: number;
  readonly perSecs: number;
  /** How many may come at once. */
  readonly burst: number;
}

/** The keys of all limiters of an edge together, of which no tenant has more than its share: a flood at its limits leaves the others' as they are. */
export class LimiterBudget {
  readonly #keys: FairShare;
  readonly #limiters = new Set<RequestLimiter>();
  #turn: Iterator<RequestLimiter> | null = null;

  constructor(keysMax: number = LIMITER_KEYS.limit, perTenant: number = LIMITER_KEYS.perHolder) {
    this.#keys = new FairShare({ limit: keysMax, perHolder: perTenant, unlimited: isOperatorsTenant });
  }

  /** Keys that are held now. */
  get size(): number {
    return this.#keys.taken;
  }

  /** For one more key. */
  hasRoomFor(tenant: string): boolean {
    return this.#keys.refusal(tenant) === null;
  }

  /** Forgets keys that have all their requests back, of one limiter after the other; for a timer. Looks at so many keys at most. */
  sweep(nowMs: number, keysMax: number = SWEPT.perLook): void {
    let left = keysMax;
    // One look at an empty table costs as much as a key.
    for (let seen = 0; seen < this.#limiters.size && left > 0; seen += 1) {
      const limiter = this.#next();
      if (limiter === null) return;
      left -= 1 + limiter.sweep(nowMs, left);
    }
  }

  /** For limiters alone. */
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

/** Of one rule. Times are counted in parts of a millisecond, as many as there are requests: so sums are whole numbers, and exact. */
export class RequestLimiter {
  readonly #budget: LimiterBudget;
  /** Whose keys these are. */
  readonly #tenant: string;
  readonly #keysMax: number;
  /** When each key has all its requests back. */
  readonly #times = new Map<string, number>();
  /** Of those that found no room. */
  #sharedTime = 0;
  /** Where the last sweep stopped. */
  #hand: Iterator<[string, number]> | null = null;
  /** Times are since the first call: the smaller they are, the more requests a second are exact. */
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

  /** Nothing would be lost with it: no key, and the shared bucket is whole again. */
  isIdle(nowMs: number): boolean {
    return this.#times.size === 0 && this.#sharedTime <= (nowMs - (this.#epochMs ?? nowMs)) * this.#parts;
  }

  /** null: go on, and it is counted. Else the whole seconds after which one may come, and nothing is counted. */
  take(key: string, { requests, perSecs, burst }: LimiterRates, nowMs: number): number | null {
    this.#epochMs ??= nowMs;
    this.#parts = requests;
    // Whole parts: a clock gives fractions of a millisecond, and the last request of a burst would be refused by an error of the sum.
    const now = Math.round((nowMs - this.#epochMs) * requests);
    const token = perSecs * 1000;
    const known = this.#times.get(key);
    const isShared = known === undefined && !this.#makeRoom(nowMs);
    // A new key may have come by the shared bucket before: its own begins with what that one has left. A clock that was set back makes no key wait
    // longer than for a whole bucket.
    const fullAt = Math.min(Math.max(known ?? this.#sharedTime, now), now + token * burst);
    const wait = untilToken(fullAt, now, token, burst);
    if (wait > 0) return Math.max(1, Math.ceil(wait / requests / 1000));
    const time = fullAt + token;
    if (isShared) this.#sharedTime = time;
    else if (known === undefined) this.#add(key, time);
    else this.#times.set(key, time);
    return null;
  }

  /** Forgets keys that have all their requests back, from where the last call stopped. Gives how many it looked at. */
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

  /** Its policy is gone: its keys are room for others. */
  close(): void {
    this.#budget.leave(this);
    this.#budget.give(this.#tenant, this.#times.size);
    this.#times.clear();
  }

  /** A key is cut out of a visitor's head, and would keep all of it: the table has a copy of its own. */
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
