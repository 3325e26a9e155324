// The rules in the way of visitors: the operator's list and that of a route, run for one request or one connection. Needs are met by the driver, or by
// whoever reads the visitor; what comes out is counted here, and done elsewhere.
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

/** What a request, or a connection, is decided by. It stays what it was, whatever the route gets meanwhile. */
export interface PolicyInForce {
  readonly lists: PolicyLists;
  /** null: it is the operator's list alone. */
  readonly ofRoute: RoutePolicy | null;
}

export interface DecidedRequest extends PolicyVisitor {
  readonly request: PolicyRequest;
  readonly subject: EffectSubject;
  /** All of its body, for a rule that must see it. */
  holdBody(maxBytes: number): PolicyEvent | Promise<PolicyEvent>;
}

export interface PolicyGateOptions {
  /** The list of the operator; null: there is none. */
  readonly operator: CompiledPolicy | null;
  readonly driver: Pick<PolicyDriver, 'perform'>;
  /** Milliseconds since the epoch: signatures and sessions speak of it. */
  readonly now: () => number;
}

/** Of what is answered at once: nobody waits, so nobody leaves meanwhile. */
const NEVER: PolicyVisitor = new AbortController();
const NO_HOST = { host: '', authority: '', scheme: 'http' } as const;

export class PolicyGate {
  /** Of the operator's rules, as a route has them of its own. */
  readonly operatorCounts: RuleCounts = { matched: [], answered: [] };
  /** Answers of rules since the start, by action and status. */
  readonly answers = new AnswerCounts();
  readonly #options: PolicyGateOptions;
  readonly #operatorAlone: PolicyInForce | null;
  #last: PolicyInForce | null = null;

  constructor(options: PolicyGateOptions) {
    this.#options = options;
    const { operator } = options;
    this.#operatorAlone = operator === null ? null : { lists: { operator, tunnel: null }, ofRoute: null };
  }

  /** null: everybody may come, and nothing is to be done. */
  inForceAt(route: Route): PolicyInForce | null {
    const ofRoute = policyOf(route);
    if (ofRoute === null) return route.policy === OUTSIDE_POLICIES ? null : this.#operatorAlone;
    // One request after the other is mostly for the same.
    if (this.#last?.ofRoute === ofRoute) return this.#last;
    const inForce = { lists: { operator: this.#options.operator, tunnel: ofRoute.compiled }, ofRoute };
    this.#last = inForce;
    return inForce;
  }

  /** At once, unless something must be found out first. */
  decide(inForce: PolicyInForce, asked: DecidedRequest): PolicyOutcome | Promise<PolicyOutcome> {
    // One moment for all that is not waited for.
    const nowMs = this.#options.now();
    let step = begin(inForce.lists, asked.request, nowMs);
    while (step.kind === 'effect') {
      const event = this.#meet(step.effect, asked);
      if (event instanceof Promise) return this.#goOn(inForce, asked, step.state, event);
      step = resume(step.state, event, nowMs);
    }
    return this.#counted(step, inForce);
  }

  /** A connection of tcp, or a new flow of udp: decided by its address, and at once. */
  admits(route: Route, address: string): boolean {
    const inForce = this.inForceAt(route);
    if (inForce === null) return true;
    let step = decideConnection(inForce.lists, address, this.#options.now());
    while (step.kind === 'effect') {
      const subject = new PolicySubject(route, inForce.ofRoute, { ...NO_HOST, address });
      const event = step.effect.kind === 'hold-body' ? null : this.#options.driver.perform(step.effect, subject, NEVER);
      // Nothing that an address decides has to be waited for.
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

  /** A rule that had let a request pass answers it after all: only its body has shown that it must. */
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

/** Rules count from 1. */
const count = (counts: number[] | undefined, { index }: RuleRef): void => {
  if (counts !== undefined) counts[index - 1] = (counts[index - 1] ?? 0) + 1;
};

/** Plain numbers; metrics read them. */
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
