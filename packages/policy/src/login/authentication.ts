// Authentication of visitors: reads credentials from header fields and compares a person or token with those of the rule.
import { eachListItem, fieldValueOf, type HeaderField, onlyValueOf } from '@tunnel/http1';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import type { Auth, Claims, LoginAuth, LoginProvider } from '../policy.ts';
import type { Identity, LoggedIn, PolicyDigests, PolicyRequest } from '../policy-step.ts';
import { base64Text, textOfBytes } from '../text/bytes.ts';

// ---- programs: tokens and JWTs ----

/**
 * Tokens of a rule. Valid tokens are cached as plain text, because a SHA-256 digest costs more than the rest of the check. The cache holds
 * at most one entry per token.
 */
export class TokenTable {
  readonly #names: ReadonlyMap<string, string>;
  readonly #known = new Map<string, Identity>();
  readonly #digests: PolicyDigests;

  constructor(tokens: NonNullable<Auth['tokens']>, digests: PolicyDigests) {
    this.#names = new Map(tokens.map(({ name, sha256 }) => [sha256, name]));
    this.#digests = digests;
  }

  /** Returns the identity with the token's name, or null if the token is unknown. */
  identityOf(token: string): Identity | null {
    const known = this.#known.get(token);
    if (known !== undefined) return known;
    const name = this.#names.get(this.#digests.sha256Hex(textOfBytes(token)));
    if (name === undefined) return null;
    const identity: Identity = { user: name, method: 'token' };
    if (this.#known.size < this.#names.size) this.#known.set(token, identity);
    return identity;
  }
}

/**
 * Returns the credentials of a scheme, or null for two Authorization fields: a JWT stays in the request, and the service might read the
 * unverified field.
 */
const credentialsOf = (headers: readonly HeaderField[], scheme: string): string | null => {
  const value = onlyValueOf(headers, 'authorization');
  if (value === null || value.length <= scheme.length || value.charCodeAt(scheme.length) !== SPACE) return null;
  return value.slice(0, scheme.length).toLowerCase() === scheme ? value.slice(scheme.length + 1).trim() : null;
};

const SPACE = 0x20;

export const bearerToken = (headers: readonly HeaderField[]): string | null => {
  const token = credentialsOf(headers, 'bearer');
  return token === null || token === '' ? null : token;
};

/**
 * Credentials of `Authorization: Basic`, or null if absent or malformed. The password may contain colons, the user name may not (RFC 7617).
 */
export const basicCredentials = (headers: readonly HeaderField[]): Credentials | null => {
  const given = credentialsOf(headers, 'basic');
  return given === null ? null : readBasic(given);
};

interface Credentials {
  readonly user: string;
  readonly password: string;
}

const readBasic = (given: string): Credentials | null => {
  const text = base64Text(given);
  const colon = text?.indexOf(':') ?? -1;
  if (text === null || colon === -1) return null;
  return { user: textOfBytes(text.slice(0, colon)), password: textOfBytes(text.slice(colon + 1)) };
};

/**
 * Returns true if the field holds a password for the edge: of a known user, or in an encoding that only a service might decode. Browsers
 * send a known password for every path, even if another method authenticated the visitor or the path is open.
 */
export const hasPasswordOf = (field: HeaderField, users: ReadonlySet<string>): boolean => {
  if (field.nameLength !== AUTHORIZATION.length || field.lower !== AUTHORIZATION) return false;
  const [, given] = /^basic[\t ]+(.*)$/i.exec(field.value) ?? [];
  if (given === undefined) return false;
  const user = readBasic(given)?.user;
  return user === undefined ? base64Text(given) === null : users.has(user);
};

const AUTHORIZATION = 'authorization';

// ---- claims ----

/** Values of a claim as strings. `scope` is a list separated by blanks (RFC 8693, 4.2). */
export const claimValues = (name: string, value: unknown): readonly string[] => {
  if (typeof value === 'string') return name === 'scope' ? value.split(' ').filter((one) => one !== '') : [value];
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  return Array.isArray(value) ? value.flatMap((one) => (Array.isArray(one) ? [] : claimValues(name, one))) : [];
};

/** Returns true if every wanted claim has an accepted value. `valuesOf` must return only own properties. */
const claimsFit = (wanted: Claims, valuesOf: (claim: string) => readonly string[]): boolean =>
  Object.entries(wanted).every(([claim, values]) => valuesOf(claim).some((value) => values.includes(value)));

export const jwtFits = (wanted: Claims | undefined, claims: Readonly<Record<string, unknown>>): boolean =>
  wanted === undefined ||
  claimsFit(wanted, (claim) => (Object.hasOwn(claims, claim) ? claimValues(claim, claims[claim]) : []));

/** Returns the subject of a JWT, or '' if absent. */
export const userOfJwt = (claims: Readonly<Record<string, unknown>>): string => {
  const sub = Object.hasOwn(claims, 'sub') ? claims['sub'] : null;
  return typeof sub === 'string' ? sub : '';
};

// ---- signed-in people ----

/**
 * Names the user by e-mail address only if the provider verified the address; otherwise by `sub`, because anyone can enter a foreign
 * address.
 */
export const userOfSession = ({ email, emailVerified, sub }: LoggedIn): string =>
  email !== null && emailVerified ? email : sub;

/** List of people who may sign in according to a rule. */
export class LoginList {
  readonly #auth: LoginAuth;
  readonly #emails: ReadonlySet<string>;
  readonly #domains: ReadonlySet<string>;
  #last: LoggedIn | null = null;
  #lastFits = false;

  constructor(auth: LoginAuth) {
    this.#auth = auth;
    this.#emails = new Set(auth.emails?.map(normalizeAddress));
    this.#domains = new Set(auth.domains?.map(normalizeAddress));
  }

  /**
   * Returns whether the rule accepts the session. Remembers the last session, because consecutive requests mostly come from the same
   * visitor.
   */
  fits(session: LoggedIn): boolean {
    if (session !== this.#last) {
      this.#lastFits = this.#isNamed(session);
      this.#last = session;
    }
    return this.#lastFits;
  }

  #isNamed(session: LoggedIn): boolean {
    if (this.#auth.anyone === true) return true;
    const { claims } = this.#auth;
    if (claims !== undefined && Object.keys(claims).length > 0) {
      if (claimsFit(claims, (claim) => (Object.hasOwn(session.claims, claim) ? (session.claims[claim] ?? []) : []))) {
        return true;
      }
    }
    if (session.email === null || !session.emailVerified) return false;
    const email = normalizeAddress(session.email);
    const at = email.lastIndexOf('@');
    return this.#emails.has(email) || (at > 0 && this.#domains.has(email.slice(at + 1)));
  }
}

// ---- browser requests ----

/**
 * Returns true if a person opens a page in a browser. Only such requests are redirected to the provider; prefetches, programs and scripts
 * get a 401.
 */
export const isNavigation = (request: PolicyRequest): boolean => {
  const { headers, method } = request;
  if (request.isUpgrade || (method !== 'GET' && method !== 'HEAD')) return false;
  const mode = fieldValueOf(headers, 'sec-fetch-mode');
  if (mode !== null && mode.toLowerCase() !== 'navigate') return false;
  const purpose = fieldValueOf(headers, 'sec-purpose') ?? fieldValueOf(headers, 'purpose');
  if (purpose !== null && /prefetch|prerender/i.test(purpose)) return false;
  return takesPage(fieldValueOf(headers, 'accept'));
};

const takesPage = (accept: string | null): boolean => {
  let isPage = false;
  eachListItem(accept?.toLowerCase() ?? '', (range) => {
    const [type = ''] = range.split(';', 1);
    isPage ||= type.trim() === 'text/html';
  });
  return isPage;
};

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Returns true for an unsafe request from another origin. Tunnels share a site, so SameSite does not keep a page of another tunnel from
 * sending the cookie.
 */
export const isCrossOrigin = (request: PolicyRequest, login: LoginProvider): boolean => {
  if (!request.isUpgrade && SAFE_METHODS.has(request.method)) return false;
  const origin = fieldValueOf(request.headers, 'origin');
  if (origin === null) return false;
  return (
    !isOwnOrigin(request, origin) && !login.trusted_origins.some((one) => plainOrigin(one) === plainOrigin(origin))
  );
};

/**
 * Compares Origin with the tunnel's origin. A page with `Referrer-Policy: no-referrer`, which many services and operators set, posts forms
 * with `Origin: null`. Then Sec-Fetch-Site decides: pages cannot set the field, and browsers send another value for sandboxed pages and
 * after cross-site redirects.
 */
export const isOwnOrigin = (request: PolicyRequest, origin: string): boolean =>
  origin === 'null'
    ? onlyValueOf(request.headers, 'sec-fetch-site') === 'same-origin'
    : plainOrigin(origin) === plainOrigin(`${request.scheme}://${request.authority}`);

/** Normalizes an origin as browsers write it: lower case, without the default port. */
const plainOrigin = (origin: string): string => {
  const lower = origin.toLowerCase();
  return lower.startsWith('https:') ? lower.replace(/:(?:443)?$/, '') : lower.replace(/:(?:80)?$/, '');
};
