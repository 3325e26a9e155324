// The tables of rate limits: one for each rule of a route's policy, gone with it. All of them share the edge's bound on keys.
import { LimiterBudget, type PolicyEvent, type PolicyNeed, RequestLimiter } from '@tunnel/core';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

/** Read only where they are needed: most tables are there already. */
export interface LimitedRoute {
  readonly routeKey: string;
  /** Whose it is. */
  readonly owner: string;
}

export type TokenNeed = Extract<PolicyNeed, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

/** By the rule's index. */
type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #clock: Clock;
  readonly #budget: LimiterBudget;
  /** By what a route is served under. */
  readonly #byPolicy = new Map<object, Tables>();
  /**
   * The operator's rules stand before each route's own as if they were written there: by route, so that a flood at one takes the room of no
   * other. No change of a tunnel's policy empties them.
   */
  readonly #ofOperator = new Map<string, Tables>();
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

  take(need: TokenNeed, policy: object, about: LimitedRoute): PolicyEvent {
    const { rule, key } = need;
    const isOperators = rule.list === 'operator';
    const tables = isOperators ? tablesOf(this.#ofOperator, about.routeKey) : tablesOf(this.#byPolicy, policy);
    const wait = this.#limiterOf(tables, rule.index, about).take(key, need, this.#clock.monotonic());
    return wait === null ? TAKEN : { kind: 'token-taken', retryAfterSecs: wait };
  }

  /** Its tables go, and give back what they held. */
  forget(policy: object): void {
    forget(this.#byPolicy, policy);
  }

  close(): void {
    this.#sweeping.cancel();
  }

  #limiterOf(tables: Tables, index: number, about: LimitedRoute): RequestLimiter {
    const found = tables.get(index);
    if (found !== undefined) return found;
    const limiter = new RequestLimiter(this.#budget, about.owner);
    tables.set(index, limiter);
    return limiter;
  }

  /** Whoever leaves without a word, leaves nothing behind: an idle table goes as if it were forgotten. One whose shared bucket is used is not idle. */
  #sweep(): void {
    const now = this.#clock.monotonic();
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
