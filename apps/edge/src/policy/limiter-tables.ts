// The tables of rate limits: a table for each rule of a route's policy, deleted together with the policy. The tables share the edge's
// limit on keys, and every tenant has a share of the limit.

import { type PolicyEffect, type PolicyEvent } from '@tunnel/policy';
import { type Clock, readOncePerTurn, type Timer } from '@tunnel/runtime';
import { LimiterBudget, RequestLimiter } from './request-limiter.rules.ts';

/** Interval of the timer that deletes idle keys of rate limiters. */
export const LIMITER_SWEEP_MS = 30_000;

export type TokenEffect = Extract<PolicyEffect, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

/** Identifies the tables and the tenant that a rate-limited request is counted for. */
export interface TokenSubject {
  /** Object that stands for the route with the current revision of its policy. Key for the tables of the route's own rules. */
  readonly served: object;
  readonly routeKey: string;
  /** Tenant charged for the keys that rate limiters store for the request. */
  readonly tenant: string;
}

/** Rate limiters of a policy, by the index of their rule. */
type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #now: () => number;
  readonly #budget: LimiterBudget;
  /** Tables of the rules of routes, by the object that stands for the route and its policy revision. */
  readonly #byPolicy = new Map<object, Tables>();
  /**
   * Tables of the operator's rules, by tenant and route. Separate tables per route let the operator's rules act as if every route had its
   * own copy, so that a flood at a route leaves the capacity of other routes untouched. A change of a tunnel's policy does not reset
   * these tables.
   */
  readonly #ofOperator = new Map<string, Tables>();
  readonly #sweeping: Timer;

  constructor(clock: Clock, budget = new LimiterBudget()) {
    this.#now = readOncePerTurn(clock);
    this.#budget = budget;
    this.#sweeping = clock.setInterval(() => this.#sweep(), LIMITER_SWEEP_MS);
  }

  /** Number of keys in the tables of all rules. */
  get keys(): number {
    return this.#budget.size;
  }

  take(effect: TokenEffect, subject: TokenSubject): PolicyEvent {
    const { rule, key } = effect;
    const tables =
      rule.list === 'operator'
        ? tablesOf(this.#ofOperator, `${subject.tenant} ${subject.routeKey}`)
        : tablesOf(this.#byPolicy, subject.served);
    const wait = this.#limiterOf(tables, rule.index, subject).take(key, effect, this.#now());
    return wait === null ? TAKEN : { kind: 'token-taken', retryAfterSecs: wait };
  }

  /** Deletes the tables of a route's policy and frees their keys. */
  forget(served: object): void {
    forget(this.#byPolicy, served);
  }

  close(): void {
    this.#sweeping.cancel();
  }

  #limiterOf(tables: Tables, index: number, subject: TokenSubject): RequestLimiter {
    const found = tables.get(index);
    if (found !== undefined) return found;
    const limiter = new RequestLimiter(this.#budget, subject.tenant);
    tables.set(index, limiter);
    return limiter;
  }

  /**
   * Deletes expired keys, then the tables of every policy that is idle, because some routes disappear without a call of forget(). A table
   * with a shared bucket in use is not idle.
   */
  #sweep(): void {
    const now = this.#now();
    this.#budget.sweep(now);
    forgetIdle(this.#byPolicy, now);
    forgetIdle(this.#ofOperator, now);
  }
}

const tablesOf = <K>(all: Map<K, Tables>, owner: K): Tables => {
  const found = all.get(owner);
  if (found !== undefined) return found;
  const tables: Tables = new Map();
  all.set(owner, tables);
  return tables;
};

const forget = <K>(all: Map<K, Tables>, owner: K): void => {
  for (const limiter of all.get(owner)?.values() ?? []) limiter.close();
  all.delete(owner);
};

const forgetIdle = <K>(all: Map<K, Tables>, nowMs: number): void => {
  for (const [owner, tables] of all) {
    if ([...tables.values()].every((limiter) => limiter.isIdle(nowMs))) forget(all, owner);
  }
};
