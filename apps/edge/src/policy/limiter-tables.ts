// The tables of rate limits: one for each rule of a route's policy, gone with it. All of them share the edge's bound on keys.
import { LimiterBudget, type PolicyEvent, type PolicyNeed, RequestLimiter } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export type TokenNeed = Extract<PolicyNeed, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

/** By the rule's index. */
type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #clock: Clock;
  readonly #budget: LimiterBudget;
  /** By what a route is served under. */
  readonly #byPolicy = new Map<object, Tables>();
  /** The operator's rules have tables of their own, which no change of a tunnel's policy empties. */
  readonly #ofOperator: Tables = new Map();
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

  take(need: TokenNeed, policy: object, routeKey: string): PolicyEvent {
    const { rule, key } = need;
    const isOperators = rule.list === 'operator';
    const limiter = this.#limiterOf(isOperators ? this.#ofOperator : this.#tablesOf(policy), rule.index);
    // The operator's rules stand before each tunnel's own as if they were written there: each tunnel is counted by itself.
    const wait = limiter.take(isOperators ? `${routeKey} ${key}` : key, need, this.#clock.monotonic());
    return wait === null ? TAKEN : { kind: 'token-taken', retryAfterSecs: wait };
  }

  /** Its tables go, and give back what they held. */
  forget(policy: object): void {
    for (const limiter of this.#byPolicy.get(policy)?.values() ?? []) limiter.close();
    this.#byPolicy.delete(policy);
  }

  close(): void {
    this.#sweeping.cancel();
  }

  #tablesOf(policy: object): Tables {
    const found = this.#byPolicy.get(policy);
    if (found !== undefined) return found;
    const tables: Tables = new Map();
    this.#byPolicy.set(policy, tables);
    return tables;
  }

  #limiterOf(tables: Tables, index: number): RequestLimiter {
    const found = tables.get(index);
    if (found !== undefined) return found;
    const limiter = new RequestLimiter(this.#budget);
    tables.set(index, limiter);
    return limiter;
  }

  /** Whoever leaves without a word, leaves nothing behind: an idle table goes as if it were forgotten. One whose shared bucket is used is not idle. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    this.#budget.sweep(now);
    for (const [policy, tables] of this.#byPolicy) {
      if ([...tables.values()].every((limiter) => limiter.isIdle(now))) this.forget(policy);
    }
  }
}
