// The tables of rate limits: one for each rule of a route's policy, gone with it. All of them share the edge's bound on keys, of which each tenant has its part.
import { LimiterBudget, type PolicyEvent, type PolicyNeed, RequestLimiter } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export type TokenNeed = Extract<PolicyNeed, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

/** Whose request it is. */
export interface TokenAbout {
  /** What its route is served under. */
  readonly served: object;
  readonly routeKey: string;
  /** Whose share of the keys is taken. */
  readonly tenant: string;
}

/** By the rule's index. */
type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #clock: Clock;
  readonly #budget: LimiterBudget;
  /** By what a route is served under. The operator's rules have tables of their own for each tenant, which no change of a tunnel's policy empties. */
  readonly #byServed = new Map<object | string, Tables>();
  readonly #sweeping: Timer;

  constructor(clock: Clock, budget = new LimiterBudget()) {
    this.#clock = clock;
    this.#budget = budget;
    this.#sweeping = clock.setInterval(() => this.#sweep(), EDGE_LIMITS.LIMITER_SWEEP_MS);
  }

  /** Of all tables. */
  get keys(): number {
    return this.#budget.size;
  }

  take(need: TokenNeed, about: TokenAbout): PolicyEvent {
    const { rule, key } = need;
    const isOperators = rule.list === 'operator';
    const limiter = this.#limiterOf(isOperators ? about.tenant : about.served, rule.index, about);
    // The operator's rules stand before each tunnel's own as if they were written there: each tunnel is counted by itself.
    const wait = limiter.take(isOperators ? `${about.routeKey} ${key}` : key, need, this.#clock.monotonic());
    return wait === null ? TAKEN : { kind: 'token-taken', retryAfterSecs: wait };
  }

  /** Its tables go, and give back what they held. */
  forget(served: object | string): void {
    for (const limiter of this.#byServed.get(served)?.values() ?? []) limiter.close();
    this.#byServed.delete(served);
  }

  close(): void {
    this.#sweeping.cancel();
  }

  #limiterOf(served: object | string, index: number, about: TokenAbout): RequestLimiter {
    const found = this.#byServed.get(served)?.get(index);
    if (found !== undefined) return found;
    const tables = this.#byServed.get(served) ?? new Map<number, RequestLimiter>();
    const limiter = new RequestLimiter(this.#budget, about.tenant);
    this.#byServed.set(served, tables.set(index, limiter));
    return limiter;
  }

  /** Whoever leaves without a word, leaves nothing behind: an idle table goes as if it were forgotten. One whose shared bucket is used is not idle. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    this.#budget.sweep(now);
    for (const [served, tables] of this.#byServed) if (areIdle(tables, now)) this.forget(served);
  }
}

const areIdle = (tables: Tables, nowMs: number): boolean => {
  for (const limiter of tables.values()) if (!limiter.isIdle(nowMs)) return false;
  return true;
};
