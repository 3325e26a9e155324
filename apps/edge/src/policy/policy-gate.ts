// Applies policy rules to visitors: runs the operator's rules and then the route's rules for a request or a connection. Effects that the
// rules request are performed by the driver, or by the reader of the visitor. Counts the outcomes; the caller acts on them.
import {
  type Answer,
  begin,
  type CompiledPolicy,
  decideConnection,
  type Pass,
  type PolicyEffect,
  type PolicyEvent,
  type PolicyLists,
  type PolicyRequest,
  type PolicyState,
  type RuleRef,
  resume,
} from '@tunnel/policy';
import type { Route } from '../routing/registry.ts';
import { OUTSIDE_POLICIES, policyOf, type RoutePolicy, type RuleCounts } from '../routing/route-policy.ts';
import type { EffectSubject, PolicyDriver, PolicyVisitor } from './policy-driver.ts';
import { PolicySubject } from './policy-subject.ts';

export type PolicyOutcome = Pass | Answer;

/**
 * The rules that decide about a request or a connection. The rules stay the same until the decision, even if the route gets a new policy
 * meanwhile.
 */
export interface PolicyInForce {
  readonly lists: PolicyLists;
  /** The route's policy, or null if only the operator's rules apply. */
  readonly ofRoute: RoutePolicy | null;
}

export interface DecidedRequest extends PolicyVisitor {
  readonly request: PolicyRequest;
  readonly subject: EffectSubject;
  /** Holds the whole body in memory, for a rule that has to inspect the body. */
  holdBody(maxBytes: number): PolicyEvent | Promise<PolicyEvent>;
}

export interface PolicyGateOptions {
  /** The operator's rules, or null if the operator has none. */
  readonly operator: CompiledPolicy | null;
  readonly driver: Pick<PolicyDriver, 'perform'>;
  /** Returns the time in milliseconds since the epoch, as used by signatures and sessions. */
  readonly now: () => number;
}

/** Visitor for effects with a synchronous result: the visitor never waits, so the signal never fires. */
const NEVER: PolicyVisitor = new AbortController();
const NO_HOST = { host: '', authority: '', scheme: 'http' } as const;

export class PolicyGate {
  /** Match counts of the operator's rules, like the counts of each route's rules. */
  readonly operatorCounts: RuleCounts = { matched: [], answered: [] };
  /** Number of responses by rules since the start, by action and status. */
  readonly answers = new AnswerCounts();
  readonly #options: PolicyGateOptions;
  readonly #operatorAlone: PolicyInForce | null;
  #last: PolicyInForce | null = null;

  constructor(options: PolicyGateOptions) {
    this.#options = options;
    const { operator } = options;
    this.#operatorAlone = operator === null ? null : { lists: { operator, tunnel: null }, ofRoute: null };
  }

  /** Returns the rules that apply at a route, or null if no rules apply. */
  inForceAt(route: Route): PolicyInForce | null {
    const ofRoute = policyOf(route);
    if (ofRoute === null) return route.policy === OUTSIDE_POLICIES ? null : this.#operatorAlone;
    // Reuse the last object: consecutive requests are usually for the same route.
    if (this.#last?.ofRoute === ofRoute) return this.#last;
    const inForce = { lists: { operator: this.#options.operator, tunnel: ofRoute.compiled }, ofRoute };
    this.#last = inForce;
    return inForce;
  }

  /** Decides about a request. Returns the outcome synchronously, unless an effect has to be awaited. */
  decide(inForce: PolicyInForce, asked: DecidedRequest): PolicyOutcome | Promise<PolicyOutcome> {
    // Read the clock once for all steps that are not awaited.
    const nowMs = this.#options.now();
    let step = begin(inForce.lists, asked.request, nowMs);
    while (step.kind === 'effect') {
      const event = this.#meet(step.effect, asked);
      if (event instanceof Promise) return this.#goOn(inForce, asked, step.state, event);
      step = resume(step.state, event, nowMs);
    }
    return this.#counted(step, inForce);
  }

  /** Decides synchronously about a TCP connection or a new UDP flow, by the visitor's address. */
  admits(route: Route, address: string): boolean {
    const inForce = this.inForceAt(route);
    if (inForce === null) return true;
    let step = decideConnection(inForce.lists, address, this.#options.now());
    while (step.kind === 'effect') {
      const subject = new PolicySubject(route, inForce.ofRoute, { ...NO_HOST, address });
      const event = step.effect.kind === 'hold-body' ? null : this.#options.driver.perform(step.effect, subject, NEVER);
      // Rules for connections only use the address, so none of their effects has to be awaited.
      if (event === null || event instanceof Promise)
        throw new Error(`connections cannot wait for ${step.effect.kind}`);
      step = resume(step.state, event, this.#options.now());
    }
    return this.#counted(step, inForce).kind === 'pass';
  }

  async #goOn(
    inForce: PolicyInForce,
    asked: DecidedRequest,
    state: PolicyState,
    event: Promise<PolicyEvent>,
  ): Promise<PolicyOutcome> {
    const met = await event;
    asked.signal.throwIfAborted();
    let step = resume(state, met, this.#options.now());
    while (step.kind === 'effect') {
      const next = await this.#meet(step.effect, asked);
      asked.signal.throwIfAborted();
      step = resume(step.state, next, this.#options.now());
    }
    return this.#counted(step, inForce);
  }

  #meet(effect: PolicyEffect, asked: DecidedRequest): PolicyEvent | Promise<PolicyEvent> {
    if (effect.kind === 'hold-body') return asked.holdBody(effect.maxBytes);
    return this.#options.driver.perform(effect, asked.subject, asked);
  }

  #counted(outcome: PolicyOutcome, { ofRoute }: PolicyInForce): PolicyOutcome {
    for (const rule of outcome.matched) count(this.#countsOf(rule, ofRoute)?.matched, rule);
    if (outcome.kind === 'pass') return outcome;
    const { rule, answer } = outcome;
    const status = answer.kind === 'own' ? answer.response.status : answer.status;
    if (rule === null) this.answers.add('login', status);
    else this.#countAnswer(rule, ofRoute, status);
    return outcome;
  }

  /** Counts a response by a rule that had first allowed the request, and rejected it later because of the body. */
  answeredLate({ ofRoute }: PolicyInForce, rule: RuleRef, status: number): void {
    this.#countAnswer(rule, ofRoute, status);
  }

  #countAnswer(rule: RuleRef, ofRoute: RoutePolicy | null, status: number): void {
    count(this.#countsOf(rule, ofRoute)?.answered, rule);
    this.answers.add(rule.action, status);
  }

  #countsOf({ list }: RuleRef, ofRoute: RoutePolicy | null): RuleCounts | undefined {
    return list === 'operator' ? this.operatorCounts : ofRoute?.counts;
  }
}

/** Increments the count of a rule. Rule indexes start at 1. */
const count = (counts: number[] | undefined, { index }: RuleRef): void => {
  if (counts !== undefined) counts[index - 1] = (counts[index - 1] ?? 0) + 1;
};

/** Counts of responses by rules, as plain numbers that the metrics read. */
export class AnswerCounts {
  readonly #counts = new Map<string, { readonly action: string; readonly status: number; count: number }>();

  add(action: string, status: number): void {
    const key = `${action} ${status}`;
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { action, status, count: 1 });
    else known.count += 1;
  }

  values(): Iterable<{ readonly action: string; readonly status: number; readonly count: number }> {
    return this.#counts.values();
  }
}
