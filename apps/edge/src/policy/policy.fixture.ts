// The policy of a route made from rules, and a gate with effects performed by the test. Used by tests only.
import { compilePolicy, type Policy, type PolicyEffect, type PolicyEvent, type Rule } from '@tunnel/policy';
import type { PolicyHolder, RoutePolicy } from '../routing/route-policy.ts';
import type { ConnectionAuthCache } from './connection-auth-cache.ts';
import { NODE_DIGESTS } from './node-digests.ts';
import type { EffectSubject } from './policy-driver.ts';
import { PolicyGate } from './policy-gate.ts';
import { LimiterBudget, RequestLimiter } from './request-limiter.rules.ts';

export const policyOfRules = (rules: readonly Rule[], more: Partial<RoutePolicy & Policy> = {}): RoutePolicy => ({
  compiled: compilePolicy({ login: more.login ?? null, rules }, NODE_DIGESTS),
  revision: 0,
  hash: '0'.repeat(64),
  services: [],
  counts: { matched: [], answered: [] },
  ...more,
});

/** Creates the policy holder of a tunnel or group. */
export const holderOf = (...rules: readonly Rule[]): PolicyHolder => ({ current: policyOfRules(rules) });

type Perform = (
  effect: PolicyEffect,
  subject: EffectSubject,
  visitor: { readonly signal: AbortSignal; readonly authCache?: ConnectionAuthCache },
) => PolicyEvent | Promise<PolicyEvent>;

export interface TestGateOptions {
  readonly operator?: readonly Rule[];
  /** Performs every effect except rate limits. */
  readonly perform?: Perform;
}

/** Creates a gate that counts rate limits as in production and leaves every other effect to the test. */
export const testGate = ({ operator, perform = neverAsked }: TestGateOptions = {}): PolicyGate => {
  const limiters = new Map<string, RequestLimiter>();
  const budget = new LimiterBudget();
  const take = (effect: Extract<PolicyEffect, { kind: 'take-token' }>, subject: EffectSubject): PolicyEvent => {
    const table = `${effect.rule.list} ${effect.rule.index} ${subject.routeKey}`;
    const limiter = limiters.get(table) ?? new RequestLimiter(budget, 'account 1');
    limiters.set(table, limiter);
    return { kind: 'token-taken', retryAfterSecs: limiter.take(effect.key, effect, Date.now()) };
  };
  return new PolicyGate({
    operator: operator === undefined ? null : compilePolicy({ login: null, rules: operator }, NODE_DIGESTS, 'operator'),
    driver: {
      perform: (effect, subject, visitor) =>
        effect.kind === 'take-token' ? take(effect, subject) : perform(effect, subject, visitor),
    },
    now: () => Date.now(),
  });
};

const neverAsked: Perform = (effect) => {
  throw new Error(`nobody meets ${effect.kind} here`);
};

/** An `auth` rule with passwords, which the test checks. */
export const basicAuth = {
  auth: {
    token_header: 'x-tunnel-token',
    basic: { realm: 'tunnel', users: { me: '$scrypt$ln=14,r=8,p=1$c2FsdA$aGFzaA' } },
  },
} satisfies Rule;

export const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** Password checks that the test completes by hand. */
export class SlowPasswords {
  readonly asked: { readonly password: string; readonly signal: AbortSignal; answer(isRight: boolean): void }[] = [];

  readonly perform: Perform = (effect, _subject, { signal }) => {
    if (effect.kind !== 'check-password') throw new Error(`nobody meets ${effect.kind} here`);
    return new Promise((resolve) => {
      const answer = (isRight: boolean): void => resolve({ kind: 'password-checked', isRight });
      this.asked.push({ password: effect.password, signal, answer });
    });
  };
}
