// Describes rules in plain words for people who look at a tunnel. Contains no secret, digest or salt; users and people are only counted.
import { hostOfUri } from '@tunnel/rules/sign-in';
import {
  type ActionName,
  type Actions,
  type Auth,
  actionOf,
  type Claims,
  type HeaderChanges,
  type LoginAuth,
  type LoginProvider,
  type Match,
  type Policy,
  type Rule,
} from '../policy.ts';

/** Returns a line such as `Requests to /admin/**: only from 10.0.0.0/8`. */
export const summaryOf = (rule: Rule): string => `${whoText(rule.match)}: ${whatText(rule)}`;

// ---- conditions ----

const whoText = (match: Match | undefined): string => {
  const words = matchWords(match);
  return words.length === 0 ? 'Everyone' : `Requests ${words.join(' ')}`;
};

const matchWords = (match: Match | undefined): string[] => {
  if (match === undefined) return [];
  const { method, path, header, address, not } = match;
  return [
    ...(method === undefined ? [] : [`with ${anyOf(method)}`]),
    ...(path === undefined ? [] : [`to ${anyOf(path)}`]),
    ...(address === undefined ? [] : [`from ${anyOf(address)}`]),
    ...Object.entries(header ?? {}).map(([name, test]) => headerWords(name, test)),
    ...(not === undefined ? [] : [`but not those ${matchWords(not).join(' ')}`]),
  ];
};

const headerWords = (name: string, test: boolean | readonly string[]): string => {
  if (test === true) return `with the header ${name}`;
  // Values are not shown, because a header value may be a secret.
  return test === false ? `without the header ${name}` : `with a certain ${name}`;
};

const SHOWN = 3;

/** Joins items as `a, b or c`, and shortens long lists. */
const anyOf = (items: readonly string[]): string => {
  if (items.length > SHOWN) return `${items.slice(0, SHOWN - 1).join(', ')} or ${items.length - SHOWN + 1} more`;
  const last = items.at(-1) ?? '';
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} or ${last}`;
};

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

// ---- actions ----

type Words = { readonly [A in ActionName]: (given: Actions[A]) => string };

const WORDS: Words = {
  allow: () => 'allowed, and later rules are skipped',
  deny: (status) => `rejected with ${status}`,
  allow_addresses: (networks) => `only from ${anyOf(networks)}`,
  auth: (auth) => `only with ${authWords(auth)}`,
  verify_webhook: ({ provider }) => `only with a valid signature (${provider})`,
  rate_limit: ({ requests, per_secs, burst, by }) =>
    `at most ${count(requests, 'request')} in ${per_secs} s ${byWords(by)}${burst === requests ? '' : `, ${burst} at once`}`,
  max_body: (bytes) => `bodies of at most ${sizeText(bytes)}`,
  redirect: ({ to, status }) => `sent to ${to} (${status})`,
  respond: ({ status }) => `answered with ${status} by the rule`,
  rewrite: ({ strip_prefix, add_prefix }) =>
    [
      ...(strip_prefix === undefined ? [] : [`${strip_prefix} is removed from the path`]),
      ...(add_prefix === undefined ? [] : [`${add_prefix} is added before the path`]),
    ].join(', '),
  route: (service) => `go to the service ${service}`,
  request_headers: (changes) => `request headers: ${changeWords(changes)}`,
  response_headers: (changes) => `response headers: ${changeWords(changes)}`,
  cors: ({ origins, credentials }) =>
    `pages of ${origins.includes('*') ? 'any site' : anyOf(origins)} may send requests${credentials ? ', with credentials' : ''}`,
  error_page: () => 'see a custom page while the service is down',
};

const whatText = (rule: Rule): string => {
  const action = actionOf(rule);
  const given = (rule as unknown as Actions)[action];
  return (WORDS[action] as (of: typeof given) => string)(given);
};

/** Describes the alternatives in the rule's order. */
const authWords = ({ basic, tokens, jwt, login }: Auth): string =>
  [
    ...(login === undefined ? [] : [`a login (${loginWords(login)})`]),
    ...(basic === undefined ? [] : [`a password (${count(Object.keys(basic.users).length, 'user')})`]),
    ...(tokens === undefined ? [] : [`a token (${anyOf(tokens.map(({ name }) => name))})`]),
    ...(jwt === undefined
      ? []
      : [`a JWT of ${hostOfUri(jwt.issuer)}${jwt.claims === undefined ? '' : claimWords(jwt.claims)}`]),
  ].join(', or ');

const loginWords = ({ anyone, emails, domains, claims }: LoginAuth): string => {
  if (anyone === true) return 'anyone with an account at the provider';
  const named = [
    ...(domains === undefined ? [] : [anyOf(domains.map((domain) => `@${domain}`))]),
    ...(emails === undefined ? [] : [count(emails.length, 'person').replace('persons', 'people')]),
    ...(claims === undefined ? [] : [`those${claimWords(claims)}`]),
  ];
  return named.join(', ');
};

const claimWords = (claims: Claims): string => ` with a certain ${Object.keys(claims).join(' and ')}`;

const byWords = (by: string): string => {
  if (by === 'tunnel') return 'in all';
  return by.startsWith('header:') ? `for each ${by.slice('header:'.length)}` : `for each ${by}`;
};

const changeWords = ({ set, add, remove }: HeaderChanges): string =>
  [
    ...(set === undefined ? [] : [`${Object.keys(set).join(', ')} set`]),
    ...(add === undefined ? [] : [`${Object.keys(add).join(', ')} added`]),
    ...(remove === undefined ? [] : [`${remove.join(', ')} removed`]),
  ].join('; ');

const UNITS = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const;

const sizeText = (bytes: number): string => {
  const [name, unit] = UNITS.find(([, one]) => bytes >= one && bytes % one === 0) ?? ['bytes', 1];
  return `${bytes / unit} ${name}`;
};

// ---- summary line ----

/** Summary of a policy's protection: `login company, 2 paths open`. */
export const guardWords = (policy: Policy): string => {
  const { rules, login } = policy;
  const first = rules.findIndex((rule) => 'auth' in rule || 'allow_addresses' in rule);
  const open = rules.slice(0, Math.max(first, 0)).flatMap((rule) => ('allow' in rule ? [rule.match] : []));
  // A rule without conditions allows everyone before the first check.
  if (open.some((match) => match === undefined)) return 'open to everyone';
  const words = [...new Set(rules.flatMap((rule) => guardOf(rule, login)))];
  const paths = new Set(open.flatMap((match) => match?.path ?? [])).size;
  const others = open.filter((match) => match?.path === undefined).length;
  const left = [
    ...(paths === 0 ? [] : [`${count(paths, 'path')} open`]),
    ...(others === 0 ? [] : [`${count(others, 'exception')}`]),
  ];
  return words.length === 0 ? 'open to everyone' : [...words, ...left].join(', ');
};

const guardOf = (rule: Rule, login: LoginProvider | null): string[] => {
  // A rule with conditions leaves other requests open, which the summary must say.
  const whom = rule.match === undefined ? '' : ' for some requests';
  if ('auth' in rule) return [`${methodWords(rule.auth, login)}${whom}`];
  if ('allow_addresses' in rule) return [`${count(rule.allow_addresses.length, 'network')}${whom}`];
  if ('verify_webhook' in rule) return [`${rule.verify_webhook.provider} webhooks`];
  if ('rate_limit' in rule) return ['rate limit'];
  if ('deny' in rule) return [rule.match === undefined ? 'closed' : 'some requests denied'];
  return [];
};

const methodWords = (auth: Auth, login: LoginProvider | null): string =>
  [
    ...(auth.login === undefined ? [] : [`login${login === null ? '' : ` ${providerName(login)}`}`]),
    ...(auth.basic === undefined ? [] : ['password']),
    ...(auth.tokens === undefined ? [] : ['token']),
    ...(auth.jwt === undefined ? [] : ['JWT']),
  ].join(' or ');

const providerName = (login: LoginProvider): string => ('provider' in login ? login.provider : hostOfUri(login.issuer));
