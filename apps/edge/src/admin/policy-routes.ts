// REST route for the policy of a tunnel: the rules in words, and how often each rule acted. Secrets, hashes and salts never leave the
// edge.
import { type PolicySummary, type ShownRule, type TunnelPolicy, tunnelPolicy } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { isSecretName, redactFields } from '@tunnel/http1';
import { actionOf, type LoginProvider, type Match, type Rule, summaryOf } from '@tunnel/policy';
import { SHORT_HASH_CHARS } from '../routing/group-policy.rules.ts';
import type { RoutePolicy, RuleCounts } from '../routing/route-policy.ts';
import { findTunnel, json, type KeyedRoutes, type RestDependencies, refused, tunnelRoute } from './rest-context.ts';

const showPolicyRoute = tunnelRoute({
  method: 'get',
  path: '/api/tunnels/{id}/policy',
  summary: 'List the policy rules of a tunnel in words, with match and response counts',
  responses: {
    200: json(tunnelPolicy, 'The active policy. Members of a group share a policy.'),
    404: refused('No such tunnel in your account, or the tunnel has no policy.'),
  },
});

export const addPolicyRoutes = (routes: KeyedRoutes, deps: RestDependencies): void => {
  routes.add(showPolicyRoute, (context) => {
    const { policy } = findTunnel(deps, context);
    if (policy.current === null) throw new Fault('POLICY_ABSENT');
    return context.json(presentPolicy(policy.current, deps.operatorRules), 200);
  });
};

export const presentSummary = (route: RoutePolicy | null): PolicySummary | null => {
  if (route === null) return null;
  const { rules } = route.compiled.policy;
  return { rules: rules.length, actions: [...new Set(rules.map(actionOf))], ...stampOf(route) };
};

const presentPolicy = (route: RoutePolicy, operatorRules: number): TunnelPolicy => {
  const { policy, tokenHeaders } = route.compiled;
  const { login, rules } = policy;
  return {
    ...stampOf(route),
    login: login === null ? null : presentLogin(login),
    rules: rules.map((rule, at) => presentRule(rule, at, route.counts, tokenHeaders)),
    operator_rules: operatorRules,
  };
};

const stampOf = ({ revision, hash }: RoutePolicy) => ({ revision, hash_short: hash.slice(0, SHORT_HASH_CHARS) });

const presentLogin = (login: LoginProvider): TunnelPolicy['login'] =>
  'provider' in login ? { provider: login.provider } : { issuer: login.issuer, client_id: login.client_id };

const presentRule = (
  rule: Rule,
  at: number,
  { matched, answered }: RuleCounts,
  tokenHeaders: readonly string[],
): ShownRule => ({
  index: at + 1,
  name: rule.name ?? null,
  match: rule.match === undefined ? null : presentMatch(rule.match, tokenHeaders),
  action: actionOf(rule),
  summary: summaryOf(rule),
  matched: matched[at] ?? 0,
  answered: answered[at] ?? 0,
});

/**
 * Converts a match for display, with secret values redacted. A header pattern can be a secret: a rule that requires `x-shared-secret: …`
 * keeps strangers out just as a token does.
 */
const presentMatch = ({ header, not, ...rest }: Match, tokenHeaders: readonly string[]): Record<string, unknown> => {
  const tests = Object.entries(header ?? {}).map(
    ([name, wanted]) => [name, presentTest(name, wanted, tokenHeaders)] as const,
  );
  return {
    ...rest,
    ...(header === undefined ? {} : { header: Object.fromEntries(tests) }),
    ...(not === undefined ? {} : { not: presentMatch(not, tokenHeaders) }),
  };
};

const presentTest = (name: string, wanted: boolean | readonly string[], tokenHeaders: readonly string[]): unknown => {
  if (typeof wanted === 'boolean') return wanted;
  const hidden = isSecretName(name) ? [name] : tokenHeaders;
  return redactFields(
    wanted.map((value) => ({ name, value })),
    hidden,
  ).map(({ value }) => value);
};
