// Naive implementation of the policy rules, following the contract: one function per sentence, without precomputation. Tests compare the
// real implementation with the naive one.

import { readingsOf } from './match/path-readings.ts';
import { type Auth, actionOf, type Match, type Policy, type Rule } from './policy.ts';
import type { AuthMethod, LoggedIn, PolicyRequest } from './policy-step.ts';
import { limiterKeyOf } from './run/limiter-key.ts';

/** Results of the checks performed by drivers. */
export interface Facts {
  isRight(user: string, password: string): boolean;
  claimsOf(token: string): Readonly<Record<string, unknown>> | null;
  sessionOf(sealed: string): LoggedIn | null;
  retryAfterSecs(key: string): number | null;
  sha256Hex(text: string): string;
}

export interface NaiveResult {
  readonly verdict: string;
  readonly rule: string | null;
  readonly matched: readonly string[];
  /** Path, service, headers and limits of a passed request, as received by the service. */
  readonly path: string | null;
  readonly service: string | null;
  readonly fields: readonly string[] | null;
  readonly user: string | null;
  readonly maxBody: number | null;
}

interface Field {
  readonly name: string;
  readonly value: string;
  readonly isVisitors: boolean;
}

const RESTRICTING = [
  'deny',
  'respond',
  'redirect',
  'auth',
  'allow_addresses',
  'verify_webhook',
  'rate_limit',
  'max_body',
];

// ---- match ----

const globPattern = (glob: string): RegExp => {
  const escaped = glob.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  const pattern = escaped
    .replace(/\/\*\*\//g, '/<deep>')
    .replace(/\/\*\*$/, '<below>')
    .replace(/\*\*/g, '<any>')
    .replace(/\*/g, '[^/]*')
    .replace('<below>', '(?:/.*)?')
    .replace(/<deep>/g, '(?:.*/)?')
    .replace(/<any>/g, '.*');
  return new RegExp(`^${pattern}$`, 's');
};

export const naiveGlob = (glob: string, text: string): boolean => globPattern(glob).test(text);

const lowered = (match: Match): Match => ({
  ...match,
  ...(match.path === undefined ? {} : { path: match.path.map((glob) => glob.toLowerCase()) }),
  ...(match.not === undefined ? {} : { not: lowered(match.not) }),
});

const isInNetwork = (network: string, address: string): boolean => {
  const [base = '', bits = '32'] = network.split('/');
  const number = (text: string): bigint => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const shift = 32n - BigInt(bits);
  return number(base) >> shift === number(address) >> shift;
};

const fitsReading = (match: Match, request: PolicyRequest, path: string): boolean => {
  const headerFits = ([name, wanted]: [string, boolean | readonly string[]]): boolean => {
    const field = request.headers.find(({ lower }) => lower === name);
    if (typeof wanted === 'boolean') return (field !== undefined) === wanted;
    return field !== undefined && wanted.some((glob) => naiveGlob(glob.replaceAll('*', '**'), field.value));
  };
  return (
    (match.method === undefined || match.method.includes(request.method)) &&
    (match.address === undefined || match.address.some((network) => isInNetwork(network, request.address))) &&
    Object.entries(match.header ?? {}).every(headerFits) &&
    (match.path === undefined || match.path.some((glob) => naiveGlob(glob, path))) &&
    (match.not === undefined || !fitsReading(match.not, request, path))
  );
};

const namesPath = (match: Match | undefined): boolean =>
  match !== undefined && (match.path !== undefined || namesPath(match.not));

export const naiveMatches = (rule: Rule, request: PolicyRequest): boolean => {
  const { match } = rule;
  if (match === undefined) return true;
  const isRestricting = RESTRICTING.includes(actionOf(rule));
  const { plain, others, isUnclear } = readingsOf(request.path);
  if (!namesPath(match)) return fitsReading(match, request, plain);
  if (isUnclear) return isRestricting && fitsReading(withoutPaths(match), request, plain);
  const verdicts = [plain, ...others].flatMap((text) => [
    fitsReading(match, request, text),
    fitsReading(lowered(match), request, text.toLowerCase()),
  ]);
  return isRestricting ? verdicts.includes(true) : !verdicts.includes(false);
};

/** Returns a match without path conditions, for a path with unclear readings. */
const withoutPaths = ({ path: _, not: __, ...rest }: Match): Match => rest;

// ---- authentication ----

const decode64 = (text: string): string | null => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  let bits = '';
  for (const one of text.replace(/=+$/, '')) {
    const value = alphabet.indexOf(one);
    if (value === -1) return null;
    bits += value.toString(2).padStart(6, '0');
  }
  return (bits.match(/.{8}/g) ?? []).map((byte) => String.fromCharCode(Number.parseInt(byte, 2))).join('');
};

const headerIn = (request: PolicyRequest, name: string): string | null =>
  request.headers.find(({ lower }) => lower === name)?.value ?? null;

const cookiesIn = (request: PolicyRequest): [string, string][] =>
  (headerIn(request, 'cookie') ?? '').split('; ').map((pair) => pair.split('=', 2) as [string, string]);

const personFits = (auth: NonNullable<Auth['login']>, session: LoggedIn): boolean => {
  if (auth.anyone === true) return true;
  const email = session.emailVerified ? (session.email?.toLowerCase() ?? null) : null;
  if (email !== null && auth.emails?.some((one) => one.toLowerCase() === email) === true) return true;
  if (email !== null && auth.domains?.some((one) => email.endsWith(`@${one.toLowerCase()}`)) === true) return true;
  const claims = Object.entries(auth.claims ?? {});
  return (
    claims.length > 0 && claims.every(([name, values]) => session.claims[name]?.some((one) => values.includes(one)))
  );
};

const isNavigation = (request: PolicyRequest): boolean =>
  ['GET', 'HEAD'].includes(request.method) &&
  !request.isUpgrade &&
  (headerIn(request, 'accept') ?? '').includes('text/html') &&
  ['navigate', null].includes(headerIn(request, 'sec-fetch-mode')) &&
  headerIn(request, 'sec-purpose') === null;

type AuthResult = { readonly user: string; readonly method: AuthMethod } | string;

/** Returns the authenticated user, or the verdict of the rule. */
const authenticate = (auth: Auth, policy: Policy, request: PolicyRequest, facts: Facts): AuthResult => {
  const token = headerIn(request, auth.token_header);
  const named = auth.tokens?.find(({ sha256 }) => token !== null && token !== '' && facts.sha256Hex(token) === sha256);
  if (named !== undefined) return { user: named.name, method: 'token' };
  let refused = false;
  let isForeign = false;
  if (auth.login !== undefined && policy.login !== null) {
    const name = request.scheme === 'https' ? '__Host-tunnel_login' : 'tunnel_login';
    const sealed = cookiesIn(request).find(([given, value]) => given === name && value !== '')?.[1];
    const session = sealed === undefined ? null : facts.sessionOf(sealed);
    if (session !== null && personFits(auth.login, session)) {
      const origin = headerIn(request, 'origin');
      const isUnsafe = request.isUpgrade || !['GET', 'HEAD', 'OPTIONS'].includes(request.method);
      const isOwn =
        origin === `${request.scheme}://${request.authority}` || policy.login.trusted_origins.includes(origin ?? '');
      isForeign = isUnsafe && origin !== null && !isOwn;
      const user = session.emailVerified && session.email !== null ? session.email : session.sub;
      if (!isForeign) return { user, method: 'login' };
    } else refused = session !== null;
  }
  const [given, ...more] = request.headers.filter(({ lower }) => lower === 'authorization');
  const [, scheme = '', credentials = ''] = /^(\S+) (.*)$/.exec(more.length > 0 ? '' : (given?.value ?? '')) ?? [];
  if (auth.jwt !== undefined && scheme.toLowerCase() === 'bearer') {
    const claims = facts.claimsOf(credentials);
    const wanted = Object.entries(auth.jwt.claims ?? {});
    if (claims !== null && wanted.every(([name, values]) => values.includes(String(claims[name])))) {
      return { user: String(claims['sub']), method: 'jwt' };
    }
  }
  // Browsers add saved passwords automatically, like cookies.
  if (auth.basic !== undefined && !isForeign && scheme.toLowerCase() === 'basic') {
    const [, user = '', password = ''] = /^([^:]*):(.*)$/s.exec(decode64(credentials) ?? '') ?? [];
    if (Object.hasOwn(auth.basic.users, user) && facts.isRight(user, password)) return { user, method: 'basic' };
  }
  if (isForeign) return '403 POLICY_CROSS_ORIGIN';
  if (refused) return '403 POLICY_LOGIN_REFUSED';
  return auth.login !== undefined && policy.login !== null && isNavigation(request)
    ? '302'
    : '401 POLICY_UNAUTHENTICATED';
};

// ---- rewrite ----

/**
 * Whether a path climbs out of its prefix. Every `..` visible to any service is a step up. Between two slashes, at most a single name
 * counts as a step down, and only if visible to every service.
 */
const naiveClimbs = (path: string): boolean => {
  let depth = 0;
  return path.split('/').some((piece) => {
    const plain = piece
      .replace(/%2e/gi, '.')
      .replace(/%2f|%5c/gi, '\\')
      .replace(/%3b/gi, ';');
    const ups = plain.split('\\').filter((name) => /^\.\.(;|$)/.test(name));
    const isName = plain
      .replace(/;.*$/, '')
      .split('\\')
      .some((name) => !['', '.'].includes(name));
    depth += ups.length > 0 ? -ups.length : Number(isName);
    return depth < 0;
  });
};

// ---- the lists ----

class NaiveRun {
  readonly matched: string[] = [];
  user: { readonly user: string; readonly method: AuthMethod } | null = null;
  path: string;
  service: string | null = null;
  maxBody: number | null = null;
  fields: Field[];
  readonly request: PolicyRequest;
  readonly facts: Facts;

  constructor(request: PolicyRequest, facts: Facts) {
    this.request = request;
    this.facts = facts;
    this.path = request.path;
    this.fields = request.headers.map(({ lower, value }) => ({ name: lower, value, isVisitors: true }));
  }

  /** Applies a rule. Returns the verdict, `over` to end the list, or null to continue. */
  act(rule: Rule, policy: Policy): string | null {
    const { request, facts } = this;
    if ('allow' in rule) return 'over';
    if ('deny' in rule) return `${rule.deny} POLICY_DENIED`;
    if ('allow_addresses' in rule) {
      return rule.allow_addresses.some((one) => isInNetwork(one, request.address)) ? null : '403 POLICY_DENIED';
    }
    if ('respond' in rule) return `${rule.respond.status}`;
    if ('redirect' in rule) return `${rule.redirect.status}`;
    if ('rate_limit' in rule) {
      const key = limiterKeyOf(rule.rate_limit.by, request, this.user?.user ?? null, facts);
      return facts.retryAfterSecs(key) === null ? null : '429 POLICY_RATE_LIMITED';
    }
    if ('max_body' in rule) {
      if (request.bodyLength !== null) return request.bodyLength > rule.max_body ? '413 POLICY_BODY_TOO_LARGE' : null;
      this.maxBody = this.maxBody === null ? rule.max_body : Math.min(this.maxBody, rule.max_body);
      return null;
    }
    if ('auth' in rule) return this.#authenticate(rule.auth, policy);
    if ('cors' in rule) {
      const isPreflight =
        request.method === 'OPTIONS' &&
        headerIn(request, 'origin') !== null &&
        headerIn(request, 'access-control-request-method') !== null;
      return isPreflight ? '204' : null;
    }
    if ('route' in rule) this.service = rule.route;
    if ('request_headers' in rule) this.#changeFields(rule.request_headers);
    return 'rewrite' in rule ? this.#rewrite(rule.rewrite) : null;
  }

  #authenticate(auth: Auth, policy: Policy): string | null {
    const result = authenticate(auth, policy, this.request, this.facts);
    if (typeof result === 'string') return result;
    this.user = result;
    if (result.method === 'basic') this.#drop((field) => field.isVisitors && field.name === 'authorization');
    return null;
  }

  #changeFields({
    set = {},
    add = {},
    remove = [],
  }: {
    readonly set?: object | undefined;
    readonly add?: object | undefined;
    readonly remove?: readonly string[] | undefined;
  }): void {
    const fill = (text: string): string =>
      text.replace('{user}', this.user?.user ?? '').replace('{address}', this.request.address);
    for (const name of remove) this.#drop((field) => field.name === name);
    for (const [name, value] of Object.entries(set)) {
      this.#drop((field) => field.name === name);
      this.fields.push({ name, value: fill(String(value)).trim(), isVisitors: false });
    }
    for (const [name, value] of Object.entries(add)) {
      this.fields.push({ name, value: fill(String(value)).trim(), isVisitors: false });
    }
  }

  #rewrite({
    strip_prefix: strip,
    add_prefix: add = '',
  }: {
    readonly strip_prefix?: string | undefined;
    readonly add_prefix?: string | undefined;
  }): string | null {
    const [plain = '', ...query] = this.path.split('?');
    let path = plain;
    if (strip !== undefined && (path === strip || path.startsWith(`${strip}/`))) path = path.slice(strip.length);
    if (add !== '' && naiveClimbs(path)) return '400 POLICY_DENIED';
    const whole = add + path.replace(/^[/\\]{2,}/, '/') || '/';
    this.path = [whole.replace(/^[/\\]{2,}/, '/'), ...query].join('?');
    return null;
  }

  #drop(isGone: (field: Field) => boolean): void {
    this.fields = this.fields.filter((field) => !isGone(field));
  }

  /** Removes headers from the visitor that only the edge may set, and adds the edge's own. */
  finish(policies: readonly Policy[]): void {
    const auths = policies.flatMap(({ rules }) => rules.flatMap((rule) => ('auth' in rule ? [rule.auth] : [])));
    const guarded = auths.length === 0 ? [] : ['x-tunnel-user', 'x-tunnel-auth'];
    for (const auth of auths) if (auth.tokens !== undefined) guarded.push(auth.token_header);
    this.#drop(({ name, isVisitors }) => isVisitors && guarded.includes(name.replaceAll('_', '-')));
    const users = auths.flatMap(({ basic }) => Object.keys(basic?.users ?? {}));
    this.#drop(({ name, value, isVisitors }) => {
      const [, credentials] = /^basic (.*)$/i.exec(value) ?? [];
      const user = credentials === undefined ? undefined : decode64(credentials)?.split(':')[0];
      return isVisitors && name === 'authorization' && user !== undefined && users.includes(user);
    });
    this.fields = this.fields.flatMap((field) => {
      if (field.name !== 'cookie' || !field.isVisitors) return [field];
      const kept = field.value.split('; ').filter((pair) => !/^(__Host-)?tunnel_login(_[0-9a-f]{8})?=/i.test(pair));
      return kept.length === 0 ? [] : [{ ...field, value: kept.join('; ') }];
    });
    if (this.user === null) return;
    this.fields.push({ name: 'x-tunnel-user', value: this.user.user, isVisitors: false });
    this.fields.push({ name: 'x-tunnel-auth', value: this.user.method, isVisitors: false });
  }
}

export const naiveRun = (
  lists: { readonly operator: Policy | null; readonly tunnel: Policy | null },
  request: PolicyRequest,
  facts: Facts,
): NaiveResult => {
  const run = new NaiveRun(request, facts);
  const { matched } = run;
  const answered = (verdict: string, rule: string | null): NaiveResult => ({
    verdict,
    rule,
    matched,
    path: null,
    service: null,
    fields: null,
    maxBody: null,
    user: run.user?.user ?? null,
  });
  for (const [name, policy] of Object.entries(lists)) {
    if (policy === null) continue;
    for (const [at, rule] of policy.rules.entries()) {
      if (!naiveMatches(rule, request)) continue;
      const ref = `${name} ${at + 1}`;
      matched.push(ref);
      const verdict = run.act(rule, policy);
      if (verdict === 'over') break;
      if (verdict !== null) return answered(verdict, ref);
    }
  }
  run.finish(Object.values(lists).filter((policy) => policy !== null));
  const { path, service, maxBody } = run;
  const fields = run.fields.map(({ name, value }) => `${name}: ${value}`).sort();
  return { verdict: 'pass', rule: null, matched, path, service, fields, user: run.user?.user ?? null, maxBody };
};
