// The tables of rate limits: one for each rule of a route's policy, gone with it. All of them share the edge's bound on keys, of which each tenant has its part.

import { type PolicyEffect, type PolicyEvent } from '@tunnel/policy';
import { type Clock, readOncePerTurn, type Timer } from '@tunnel/runtime';
import { LimiterBudget, RequestLimiter } from './request-limiter.rules.ts';

/** how often limiters are looked through for keys that are idle */
export const LIMITER_SWEEP_MS = 30_000;

export type TokenEffect = Extract<PolicyEffect, { kind: 'take-token' }>;

const TAKEN: PolicyEvent = { kind: 'token-taken', retryAfterSecs: null };

/** Whose request it is. */
export interface TokenSubject {
  /** What its route is served under. */
  readonly served: object;
  readonly routeKey: string;
  /** Whose share of the keys is taken. */
  readonly tenant: string;
}

/** By the rule's index. */
type Tables = Map<number, RequestLimiter>;

export class LimiterTables {
  readonly #now: () => number;
  readonly #budget: LimiterBudget;
  /** By what a route is served under. */
  readonly #byPolicy = new Map<object, Tables>();
  /**
   * The operator's rules stand before each route's own as if they were written there: by route and its tenant, so that a flood at one
   * takes the room of no other. No change of a tunnel's policy empties them.
   */
  readonly #ofOperator = new Map<string, Tables>();
  readonly #sweeping: Timer;

  constructor(clock: Clock, budget = new LimiterBudget()) {
    this.#now = readOncePerTurn(clock);
    this.#budget = budget;
    this.#sweeping = clock.setInterval(() => this.#sweep(), LIMITER_SWEEP_MS);
  }

  /** Of all tables. */
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

  /** Its tables go, and give back what they held. */
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

  /** Whoever leaves without a word, leaves nothing behind: an idle table goes as if it were forgotten. One whose shared bucket is used is not idle. */
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
