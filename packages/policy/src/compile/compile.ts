// Compiles a policy: everything that can be parsed, sorted and hashed before the first request. Tunnels with equal policies share the
// result.

import { HeaderRule } from '../edits/header-rule.ts';
import { parseRedirectTemplate, type RedirectTemplate } from '../edits/placeholders.ts';
import { IDENTITY_FIELDS, type LastChanges, newLastChanges } from '../edits/request-changes.ts';
import { LoginList, TokenTable } from '../login/authentication.ts';
import { isOfConnections } from '../match/connection-rules.ts';
import { FieldNames } from '../match/field-names.ts';
import { NetworkSet } from '../match/network-set.ts';
import { type CompiledMatch, compileMatch, restricts } from '../match/rule-match.ts';
import { type Actions, actionOf, type LoginProvider, type Policy, type Rule } from '../policy.ts';
import type { PolicyAnswer, PolicyDigests, ResponseEdit, RuleRef } from '../policy-step.ts';
import { type LastMatched, newLastMatched } from './matched-rules.ts';
import { respondAnswer } from './policy-answers.ts';

export interface CompiledPolicy {
  readonly policy: Policy;
  readonly list: RuleRef['list'];
  readonly login: LoginProvider | null;
  /** True if a rule authenticates visitors. The edge then removes the identity fields that a visitor sends. */
  readonly hasAuth: boolean;
  readonly rules: readonly CompiledRule[];
  /** Lower-case names of the header fields that carry a token of the policy. The service never gets them, and captures and the API hide them. */
  readonly tokenHeaders: readonly string[];
  /** Names of visitor fields that never reach the service, written with `-` instead of `_`. */
  readonly guarded: FieldNames;
  /** Users with a password that only the edge checks. Null for a policy without passwords. */
  readonly users: ReadonlySet<string> | null;
  readonly lastMatched: LastMatched;
  readonly lastChanges: LastChanges;
}

export interface CompiledRule {
  readonly ref: RuleRef;
  /** Conditions of the rule. Null for a rule that matches every request. */
  readonly match: CompiledMatch | null;
  readonly action: CompiledAction;
  /** True if the visitor's address decides the rule. Such rules also apply to TCP and UDP connections and to the edge's sign-in paths. */
  readonly isByAddress: boolean;
}

export type CompiledAction =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly status: number }
  | { readonly kind: 'allow_addresses'; readonly networks: NetworkSet }
  | CompiledAuth
  | { readonly kind: 'verify_webhook'; readonly rule: Actions['verify_webhook']; readonly digests: PolicyDigests }
  | { readonly kind: 'rate_limit'; readonly rule: Actions['rate_limit']; readonly digests: PolicyDigests }
  | { readonly kind: 'max_body'; readonly bytes: number }
  | { readonly kind: 'redirect'; readonly status: number; readonly to: RedirectTemplate }
  | { readonly kind: 'respond'; readonly answer: PolicyAnswer }
  | { readonly kind: 'rewrite'; readonly rule: Actions['rewrite'] }
  | { readonly kind: 'route'; readonly service: string }
  | { readonly kind: 'request_headers'; readonly fields: HeaderRule }
  | { readonly kind: 'response_headers'; readonly fields: HeaderRule }
  | { readonly kind: 'cors'; readonly rule: Actions['cors'] }
  | { readonly kind: 'error_page'; readonly edit: ResponseEdit };

export interface CompiledAuth {
  readonly kind: 'auth';
  readonly auth: Actions['auth'];
  readonly tokens: TokenTable | null;
  readonly people: LoginList | null;
}

const NONE: readonly never[] = [];
const NO_FIELDS = new FieldNames(NONE);

/** Compiles a policy that has passed the schema and its checks. */
export const compilePolicy = (
  policy: Policy,
  digests: PolicyDigests,
  list: RuleRef['list'] = 'tunnel',
): CompiledPolicy => {
  const rules = policy.rules.map((rule, at) => compileRule(rule, at + 1, list, digests));
  const auths = policy.rules.flatMap((rule) => ('auth' in rule ? [rule.auth] : []));
  const tokenHeaders = [
    ...new Set(auths.flatMap((auth) => (auth.tokens === undefined ? [] : [auth.token_header.toLowerCase()]))),
  ];
  const hasAuth = auths.length > 0;
  const users = auths.flatMap(({ basic }) => (basic === undefined ? [] : Object.keys(basic.users)));
  return {
    policy,
    list,
    login: policy.login,
    hasAuth,
    rules,
    tokenHeaders,
    guarded: hasAuth
      ? new FieldNames([...IDENTITY_FIELDS, ...tokenHeaders.map((name) => name.replaceAll('_', '-'))])
      : NO_FIELDS,
    users: users.length === 0 ? null : new Set(users),
    lastMatched: newLastMatched(),
    lastChanges: newLastChanges(),
  };
};

const compileRule = (rule: Rule, index: number, list: RuleRef['list'], digests: PolicyDigests): CompiledRule => {
  const action = actionOf(rule);
  return {
    ref: { list, index, name: rule.name ?? null, action },
    match: rule.match === undefined ? null : compileMatch(rule.match, restricts(action)),
    action: compileAction(rule, digests),
    isByAddress: isOfConnections(rule),
  };
};

const compileAction = (rule: Rule, digests: PolicyDigests): CompiledAction => {
  if ('allow' in rule) return { kind: 'allow' };
  if ('deny' in rule) return { kind: 'deny', status: rule.deny };
  if ('allow_addresses' in rule) return { kind: 'allow_addresses', networks: new NetworkSet(rule.allow_addresses) };
  if ('auth' in rule) return compileAuth(rule.auth, digests);
  if ('verify_webhook' in rule) return { kind: 'verify_webhook', rule: rule.verify_webhook, digests };
  if ('rate_limit' in rule) return { kind: 'rate_limit', rule: rule.rate_limit, digests };
  if ('max_body' in rule) return { kind: 'max_body', bytes: rule.max_body };
  if ('redirect' in rule) {
    return { kind: 'redirect', status: rule.redirect.status, to: parseRedirectTemplate(rule.redirect.to) };
  }
  if ('respond' in rule) return { kind: 'respond', answer: respondAnswer(rule.respond) };
  if ('rewrite' in rule) return { kind: 'rewrite', rule: rule.rewrite };
  if ('route' in rule) return { kind: 'route', service: rule.route };
  if ('request_headers' in rule) return { kind: 'request_headers', fields: new HeaderRule(rule.request_headers) };
  if ('response_headers' in rule) return { kind: 'response_headers', fields: new HeaderRule(rule.response_headers) };
  if ('cors' in rule) return { kind: 'cors', rule: rule.cors };
  return { kind: 'error_page', edit: { kind: 'error-page', body: rule.error_page.body } };
};

const compileAuth = (auth: Actions['auth'], digests: PolicyDigests): CompiledAuth => ({
  kind: 'auth',
  auth,
  tokens: auth.tokens === undefined ? null : new TokenTable(auth.tokens, digests),
  people: auth.login === undefined ? null : new LoginList(auth.login),
});
