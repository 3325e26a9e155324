// Who a visitor is: credentials read from the fields of a request, and whether a person or a token is one that the rule names.
import { eachListItem, fieldValueOf, type HeaderField, onlyValueOf } from '@tunnel/http1';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import type { Auth, Claims, LoginAuth, LoginProvider } from '../policy.ts';
import type { Identity, LoggedIn, PolicyDigests, PolicyRequest } from '../policy-step.ts';
import { base64Text, textOfBytes } from '../text/bytes.ts';

// ---- programs: tokens and JWTs ----

/** The tokens of one rule. Those that were right are remembered by their text, as a digest costs more than all else: at most one each. */
export class TokenTable {
  readonly #names: ReadonlyMap<string, string>;
  readonly #known = new Map<string, Identity>();
  readonly #digests: PolicyDigests;

  constructor(tokens: NonNullable<Auth['tokens']>, digests: PolicyDigests) {
    this.#names = new Map(tokens.map(({ name, sha256 }) => [sha256, name]));
    this.#digests = digests;
  }

  /** Whose it is, by the token's name; null: it is none of them. */
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

/** Of two there is none: a JWT stays in the request, and a service might read the one that nobody has verified. */
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

/** Of `Authorization: Basic`; null: none, or none that can be read. The password may have colons, the name may not (RFC 7617). */
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
 * The field holds a password of the edge: of one of its users, or written so that only a service might read it. Whoever was let in by other
 * means, or asks for a path that is open, sends it all the same: browsers do so for every path once they know it.
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

/** What a claim says, as texts. `scope` is a list with blanks (RFC 8693, 4.2). */
export const claimValues = (name: string, value: unknown): readonly string[] => {
  if (typeof value === 'string') return name === 'scope' ? value.split(' ').filter((one) => one !== '') : [value];
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  return Array.isArray(value) ? value.flatMap((one) => (Array.isArray(one) ? [] : claimValues(name, one))) : [];
};

/** Each claim has one of its values. `valuesOf` is asked for own claims only. */
const claimsFit = (wanted: Claims, valuesOf: (claim: string) => readonly string[]): boolean =>
  Object.entries(wanted).every(([claim, values]) => valuesOf(claim).some((value) => values.includes(value)));

export const jwtFits = (wanted: Claims | undefined, claims: Readonly<Record<string, unknown>>): boolean =>
  wanted === undefined ||
  claimsFit(wanted, (claim) => (Object.hasOwn(claims, claim) ? claimValues(claim, claims[claim]) : []));

/** Whom a JWT speaks of; '': it does not say. */
export const userOfJwt = (claims: Readonly<Record<string, unknown>>): string => {
  const sub = Object.hasOwn(claims, 'sub') ? claims['sub'] : null;
  return typeof sub === 'string' ? sub : '';
};

// ---- people who logged in ----

/** An e-mail that nobody has verified is whatever its owner typed: then `sub` names the person. */
export const userOfSession = ({ email, emailVerified, sub }: LoggedIn): string =>
  email !== null && emailVerified ? email : sub;

/** The people of one rule. */
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

  /** Of one after the other it is the same person, and what its cookie holds was read once. */
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

// ---- what a browser does ----

/** A person who opens an address: only such a request is sent to the provider. Prefetches, programs and scripts read a 401. */
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

/** Tunnels share a site, so SameSite does not keep a sibling's page from using the cookie: the origin does, where something is changed. */
export const isCrossOrigin = (request: PolicyRequest, login: LoginProvider): boolean => {
  if (!request.isUpgrade && SAFE_METHODS.has(request.method)) return false;
  const origin = fieldValueOf(request.headers, 'origin');
  if (origin === null) return false;
  return (
    !isOwnOrigin(request, origin) && !login.trusted_origins.some((one) => plainOrigin(one) === plainOrigin(origin))
  );
};

/**
 * A page with `Referrer-Policy: no-referrer`, which many services and operators set, posts its own forms with `Origin: null`. Then the
 * browser's own word counts: no page can write a `Sec-Fetch-` field, and of one in a sandbox or behind a redirect it says another.
 */
export const isOwnOrigin = (request: PolicyRequest, origin: string): boolean =>
  origin === 'null'
    ? onlyValueOf(request.headers, 'sec-fetch-site') === 'same-origin'
    : plainOrigin(origin) === plainOrigin(`${request.scheme}://${request.authority}`);

/** As browsers write it: lower case, the usual port left out. */
const plainOrigin = (origin: string): string => {
  const lower = origin.toLowerCase();
  return lower.startsWith('https:') ? lower.replace(/:(?:443)?$/, '') : lower.replace(/:(?:80)?$/, '');
};
