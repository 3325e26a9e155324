// The tables of rate limits: one for each rule of a route's policy, gone with it. All of them share the edge's bound on keys.
import { LimiterBudget, type PolicyEvent, type PolicyNeed, RequestLimiter } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export type TokenNeed = Extract<PolicyNeed, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #clock: Clock;
  readonly #budget = new LimiterBudget();
  /** By what a route is served under; the operator's rules have tables of their own, which no change of a tunnel empties. */
  readonly #byPolicy = new Map<object, Tables>();
  readonly #ofOperator: Tables = new Map();
  readonly #sweeping: Timer;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweeping = clock.setInterval(() => this.#sweep(), EDGE_LIMITS.LIMITER_SWEEP_MS);
  }

  /** Of all tables. */
  get keys(): number {
    let keys = 0;
    for (const tables of [this.#ofOperator, ...this.#byPolicy.values()]) {
      for (const limiter of tables.values()) keys += limiter.size;
    }
    return keys;
  }

  take(need: TokenNeed, policy: object, routeKey: string): PolicyEvent {
    const { rule, key, requests, perSecs, burst } = need;
    const isOperators = rule.list === 'operator';
    const limiter = this.#limiterOf(isOperators ? this.#ofOperator : this.#tablesOf(policy), rule.index);
    // The operator's rules stand before each tunnel's own as if they were written there: each tunnel is counted by itself.
    const counted = isOperators ? `${routeKey} ${key}` : key;
    const wait = limiter.take(counted, { requests, perSecs, burst }, this.#clock.monotonic());
    return wait === null ? TAKEN : { kind: 'token-taken', retryAfterSecs: wait };
  }

  /** Its tables go, and give back what they held. */
  forget(policy: object): void {
    for (const limiter of this.#byPolicy.get(policy)?.values() ?? []) limiter.clear();
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

  /** A policy that nobody comes to any more leaves nothing behind, whether or not somebody says that it is gone. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [policy, tables] of this.#byPolicy) {
      sweepTables(tables, now);
      if (tables.size === 0) this.#byPolicy.delete(policy);
    }
    sweepTables(this.#ofOperator, now);
  }
}

const sweepTables = (tables: Tables, now: number): void => {
  for (const [index, limiter] of tables) {
    limiter.sweep(now);
    if (limiter.size === 0) tables.delete(index);
  }
};
