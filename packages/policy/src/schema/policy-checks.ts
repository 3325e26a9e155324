// Checks that need the whole policy: whether the rules suit their tunnel, limits over all rules, and warnings about likely mistakes.

import { nearestWord } from '@tunnel/errors';
import { shownText } from '@tunnel/rules/names';
import { isConnectionAction, isOfConnections, REQUEST_FIELDS, requestFieldOf } from '../match/connection-rules.ts';
import { restricts } from '../match/rule-match.ts';
import { actionOf, type Match, type Policy, type Rule } from '../policy.ts';
import { canonicalJson } from '../text/canonical-json.ts';
import { POLICY_NETWORKS_MAX, POLICY_PEOPLE_MAX, POLICY_TOKENS_MAX, POLICY_USERS_MAX } from './limits.ts';
import { type PolicyProblem, problemAt } from './policy-problems.ts';
import { utf8Length } from './policy-values.ts';

/**
 * Maximum size of a policy as JSON in UTF-8. A control message is limited to 64 KiB and carries more than the policy.
 * @limit policies: Policy, size as JSON | `POLICY_INVALID`
 */
export const POLICY_WIRE_MAX_BYTES = 48 * 1024;

/** The tunnel that a policy belongs to. */
export interface PolicyAbout {
  readonly protocol: 'http' | 'tcp' | 'udp';
  /** Service names allowed in `route`. */
  readonly services: readonly string[];
  /** True for the operator's policy, which applies to every tunnel of an edge before the tunnel's policy. */
  readonly isOperator?: boolean | undefined;
}

type Path = readonly (string | number)[];
type Refuse = (path: Path, message: string) => PolicyProblem;

/** Returns the problems in rule order. Empty for a valid policy. */
export const problemsOfPolicy = (policy: Policy, about: PolicyAbout): readonly PolicyProblem[] => {
  const refuse: Refuse = (path, message) => problemAt(policy, path, message);
  return [
    ...loginProblems(policy, about, refuse),
    ...policy.rules.flatMap((rule, index) => ruleProblems(policy, rule, ['rules', index], about, refuse)),
    ...boundProblems(policy, refuse),
  ];
};

// ---- rules for the protocol ----

const loginProblems = ({ login }: Policy, { protocol, isOperator }: PolicyAbout, refuse: Refuse): PolicyProblem[] => {
  if (login === null) return [];
  if (isOperator === true) return [refuse(['login'], "the operator's policy cannot use `login`")];
  return protocol === 'http' ? [] : [refuse(['login'], '`login` is for http tunnels')];
};

const ruleProblems = (policy: Policy, rule: Rule, path: Path, about: PolicyAbout, refuse: Refuse): PolicyProblem[] => {
  const action = actionOf(rule);
  if (about.protocol !== 'http' && !isConnectionAction(action)) {
    return [refuse([...path, action], `\`${action}\` is for http tunnels`)];
  }
  return [
    ...(about.protocol === 'http' ? [] : matchProblems(rule.match, [...path, 'match'], refuse)),
    ...('rate_limit' in rule ? limitProblems(rule.rate_limit.by, path, about, refuse) : []),
    ...('route' in rule ? routeProblems(rule.route, path, about, refuse) : []),
    ...('auth' in rule && rule.auth.login !== undefined ? loginRuleProblems(policy, path, about, refuse) : []),
  ];
};

/** Only the address of a connection is known, so every other condition is rejected. */
const matchProblems = (match: Match | undefined, path: Path, refuse: Refuse): PolicyProblem[] => {
  if (match === undefined) return [];
  const foreign = REQUEST_FIELDS.filter((field) => match[field] !== undefined);
  return [
    ...foreign.map((field) => refuse([...path, field], `\`match.${field}\` is for http tunnels`)),
    ...matchProblems(match.not, [...path, 'not'], refuse),
  ];
};

const limitProblems = (by: string, path: Path, { protocol }: PolicyAbout, refuse: Refuse): PolicyProblem[] => {
  if (protocol === 'http' || by === 'address' || by === 'tunnel') return [];
  const message = `\`rate_limit.by\` must be address or tunnel: \`${by.split(':')[0]}\` is for http tunnels`;
  return [refuse([...path, 'rate_limit', 'by'], message)];
};

const routeProblems = (name: string, path: Path, about: PolicyAbout, refuse: Refuse): PolicyProblem[] => {
  if (about.isOperator === true) return [refuse([...path, 'route'], "the operator's policy cannot use `route`")];
  if (about.services.includes(name)) return [];
  const near = nearestWord(name, about.services);
  const help = near === undefined ? knownServices(about.services) : `; did you mean \`${near}\`?`;
  return [refuse([...path, 'route'], `\`route\` names '${shownText(name)}', which is not one of \`services\`${help}`)];
};

const knownServices = (services: readonly string[]): string =>
  services.length === 0 ? ' (there are none)' : `; known here: ${services.join(', ')}`;

const loginRuleProblems = (policy: Policy, path: Path, about: PolicyAbout, refuse: Refuse): PolicyProblem[] => {
  const at = [...path, 'auth', 'login'];
  if (about.isOperator === true) return [refuse(at, "the operator's policy cannot use `auth.login`")];
  return policy.login === null
    ? [refuse(at, '`auth.login` needs a `login` next to `rules`, with the sign-in provider')]
    : [];
};

// ---- limits ----

const boundProblems = (policy: Policy, refuse: Refuse): PolicyProblem[] => {
  const counts = [
    [networksOf, POLICY_NETWORKS_MAX, 'addresses and networks'],
    [usersOf, POLICY_USERS_MAX, 'users'],
    [tokensOf, POLICY_TOKENS_MAX, 'tokens'],
    [peopleOf, POLICY_PEOPLE_MAX, 'email addresses and domains'],
  ] as const;
  const problems = counts.flatMap(([countOf, most, what]) => overBound(policy, countOf, most, what, refuse));
  const bytes = utf8Length(canonicalJson(policy));
  const most = POLICY_WIRE_MAX_BYTES;
  if (bytes > most) problems.push(refuse([], `it has ${bytes} bytes when sent as JSON; the limit is ${most}`));
  return problems;
};

/** Reported at the first rule beyond the limit. */
const overBound = (
  { rules }: Policy,
  countOf: (rule: Rule) => number,
  most: number,
  what: string,
  refuse: Refuse,
): PolicyProblem[] => {
  let sum = 0;
  for (const [index, rule] of rules.entries()) {
    sum += countOf(rule);
    if (sum > most) return [refuse(['rules', index], `a policy has at most ${most} ${what}`)];
  }
  return [];
};

const networksOf = (rule: Rule): number =>
  ('allow_addresses' in rule ? rule.allow_addresses.length : 0) + matchedNetworks(rule.match);

const matchedNetworks = (match: Match | undefined): number =>
  match === undefined ? 0 : (match.address?.length ?? 0) + matchedNetworks(match.not);

const usersOf = (rule: Rule): number => ('auth' in rule ? Object.keys(rule.auth.basic?.users ?? {}).length : 0);

const tokensOf = (rule: Rule): number => ('auth' in rule ? (rule.auth.tokens?.length ?? 0) : 0);

const peopleOf = (rule: Rule): number =>
  'auth' in rule ? (rule.auth.login?.emails?.length ?? 0) + (rule.auth.login?.domains?.length ?? 0) : 0;

// ---- warnings ----

export const warningsOfPolicy = (policy: Policy, about: PolicyAbout): readonly PolicyProblem[] => {
  const warn: Refuse = (path, message) => problemAt(policy, path, message);
  const { rules, login } = policy;
  const asksForLogin = rules.some((rule) => 'auth' in rule && rule.auth.login !== undefined);
  return [
    ...(rules.length === 0 && about.isOperator !== true
      ? [warn(['rules'], 'there is no rule: everyone can visit')]
      : []),
    ...(login !== null && !asksForLogin ? [warn(['login'], 'there is a `login`, but no rule uses it')] : []),
    ...rules.flatMap((rule, index) => ruleWarnings(rules, rule, index, warn)),
    ...(about.isOperator === true ? rules.flatMap((rule, index) => unheldWarnings(rule, index, warn)) : []),
  ];
};

/**
 * Warns about rules that do not apply to TCP and UDP. A tunnel's policy with such a rule is rejected, but the operator's policy covers
 * tunnels of every kind.
 */
const unheldWarnings = (rule: Rule, index: number, warn: Refuse): PolicyProblem[] => {
  const action = actionOf(rule);
  if (!restricts(action) || isOfConnections(rule)) return [];
  const field = isConnectionAction(action) ? requestFieldOf(rule.match) : undefined;
  const what = field === undefined ? `\`${action}\`` : `\`match.${field}\``;
  return [warn(['rules', index], `${what} applies to requests; tcp and udp tunnels ignore the rule`)];
};

const ruleWarnings = (rules: readonly Rule[], rule: Rule, index: number, warn: Refuse): PolicyProblem[] => {
  const before = rules.slice(0, index);
  const action = actionOf(rule);
  const end = before.findIndex(endsForAll);
  if (end !== -1) {
    // Warns only at the first unreachable rule.
    const isFirst = end === index - 1;
    return isFirst ? [warn(['rules', index], `never reached: rule ${end + 1} applies to all requests`)] : [];
  }
  const guard = before.findIndex((earlier) => 'auth' in earlier && mayMeet(earlier.match, rule.match));
  if (action === 'cors' && guard !== -1) {
    const message = `\`cors\` comes after the \`auth\` of rule ${guard + 1}: browser preflights carry no credentials; move \`cors\` above`;
    return [warn(['rules', index, 'cors'], message)];
  }
  if ('rate_limit' in rule && rule.rate_limit.by === 'user' && !before.some((earlier) => 'auth' in earlier)) {
    return [
      warn(
        ['rules', index, 'rate_limit', 'by'],
        'no user is known at this point: without an `auth` above, requests are counted by address',
      ),
    ];
  }
  return [];
};

const endsForAll = (rule: Rule): boolean =>
  rule.match === undefined && ('allow' in rule || 'deny' in rule || 'respond' in rule || 'redirect' in rule);

/** Returns whether a request can match both rules. Different path globs are assumed not to overlap. */
const mayMeet = (one: Match | undefined, other: Match | undefined): boolean =>
  one?.path === undefined || other?.path === undefined || one.path.some((glob) => other.path?.includes(glob));
