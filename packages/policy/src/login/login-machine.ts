// A login from its first redirect to the session, as values: what is remembered meanwhile, what a callback must bring, and every way out by its name.
//
//   asked ─► begun ─► (provider) ─► callback ─► go ─► (token request) ─► session ─► returned
//              │                       └─► a CallbackRefusal                └─► null: the token names nobody
//              └─► the provider is away

import { Fault, type FaultValues } from '@tunnel/errors';
import { isVisible } from '@tunnel/http1';
import { POLICY_BOUNDS } from '../limits.ts';
import type { Policy } from '../policy.ts';
import type { LoggedIn } from '../policy-step.ts';
import { claimValues } from './authentication.ts';

/** a longer path is not come back to with its query, or not at all: it travels in a cookie */
const POLICY_RETURN_PATH_MAX_CHARS = 2 * 1024;

/** The edge's own, on tunnels with a login alone. */
export const CALLBACK_PATH = '/.tunnel/callback';
export const LOGOUT_PATH = '/.tunnel/logout';

/** Sealed into the cookie of this login: only the browser that began it can end it. */
export interface PendingLogin {
  /** 8 hex digits: the end of the cookie's name. */
  readonly id: string;
  /** The rest of the state: the id alone could be guessed. */
  readonly secret: string;
  readonly nonce: string;
  /** Of PKCE: what makes a code that is caught on its way worthless. */
  readonly verifier: string;
  readonly returnPath: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

/** Hex or base64url, as chance gave it; `id` 8 hex digits. */
interface LoginChances {
  readonly id: string;
  readonly secret: string;
  readonly nonce: string;
  readonly verifier: string;
}

export const pendingLogin = (chances: LoginChances, path: string, nowMs: number): PendingLogin => ({
  ...chances,
  returnPath: returnPathOf(path),
  expiresAt: Math.floor(nowMs / 1000) + POLICY_BOUNDS.POLICY_PENDING_LOGIN_SECS,
});

/** The `state` of the authorization request, before an operator's provider has the tunnel's address sealed around it. */
export const stateOf = ({ id, secret }: PendingLogin): string => `${id}.${secret}`;

type CallbackRefusal =
  | 'query-unclear'
  | 'state-missing'
  /** Of another browser, another tunnel, another secret of the edge, or used already: there is no cookie that opens. */
  | 'state-unknown'
  | 'state-foreign'
  | 'state-expired'
  | 'provider-refused'
  | 'provider-failed'
  | 'code-missing';

type CallbackVerdict =
  | { readonly kind: 'go'; readonly pending: PendingLogin; readonly code: string; readonly issuer: string | null }
  | { readonly kind: 'refused'; readonly why: CallbackRefusal; readonly fault: Fault };

const FAULT_CODES = {
  'query-unclear': 'POLICY_LOGIN_STATE',
  'state-missing': 'POLICY_LOGIN_STATE',
  'state-unknown': 'POLICY_LOGIN_STATE',
  'state-foreign': 'POLICY_LOGIN_STATE',
  'state-expired': 'POLICY_LOGIN_STATE',
  'provider-refused': 'POLICY_LOGIN_REFUSED',
  'provider-failed': 'POLICY_PROVIDER_AWAY',
  'code-missing': 'POLICY_PROVIDER_AWAY',
} as const satisfies Record<CallbackRefusal, string>;

const refused = (why: CallbackRefusal): CallbackVerdict => {
  const code = FAULT_CODES[why];
  const values: FaultValues = code === 'POLICY_LOGIN_REFUSED' ? { user: 'this visitor' } : {};
  return { kind: 'refused', why, fault: new Fault(code, values, { internal: `login: ${why}` }) };
};

/**
 * `query` of the callback with its `?`; `pendingById`: of the cookies that this browser sent, those that open.
 * The state comes first: what else the query says is anybody's word until then.
 */
export const checkCallback = (
  query: string,
  pendingById: ReadonlyMap<string, PendingLogin>,
  nowMs: number,
): CallbackVerdict => {
  const values = queryValues(query);
  if (values === null) return refused('query-unclear');
  const state = values.get('state');
  if (state === undefined || state === '') return refused('state-missing');
  const [id = ''] = state.split('.', 1);
  const pending = pendingById.get(id);
  if (pending === undefined) return refused('state-unknown');
  if (!isSameText(stateOf(pending), state)) return refused('state-foreign');
  if (pending.expiresAt * 1000 <= nowMs) return refused('state-expired');
  const error = values.get('error');
  if (error !== undefined) return refused(OF_THE_PERSON.has(error) ? 'provider-refused' : 'provider-failed');
  const code = values.get('code');
  if (code === undefined || code === '') return refused('code-missing');
  return { kind: 'go', pending, code, issuer: values.get('iss') ?? null };
};

/** Errors of an authorization that say that the person may not, or would not (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const OF_THE_PERSON: ReadonlySet<string> = new Set([
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/** The time does not tell how far two texts are the same. */
const isSameText = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
};

/** null: a name stands there twice, or something is no text: two readers would read two things. */
export const queryValues = (query: string): ReadonlyMap<string, string> | null => {
  const values = new Map<string, string>();
  for (const pair of query.replace(/^\?/, '').split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = formText(equals === -1 ? pair : pair.slice(0, equals));
    const value = formText(equals === -1 ? '' : pair.slice(equals + 1));
    if (name === null || value === null || values.has(name)) return null;
    values.set(name, value);
  }
  return values;
};

const formText = (text: string): string | null => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
};

// ---- where it leads back ----

/**
 * Path and query, as a reference on the same host: it begins with exactly one slash, as `//x` and `/\x` are other hosts to a browser, and has
 * nothing that ends a line. What would not fit the cookie comes back without its query, or to the start.
 */
export const returnPathOf = (path: string): string => {
  const own = `/${path.replace(/^[/\\]+/, '')}`;
  if (!path.startsWith('/') || !isVisible(own)) return '/';
  const [plain = '/'] = own.split('?', 1);
  if (plain === CALLBACK_PATH || plain === LOGOUT_PATH) return '/';
  if (own.length <= POLICY_RETURN_PATH_MAX_CHARS) return own;
  return plain.length <= POLICY_RETURN_PATH_MAX_CHARS ? plain : '/';
};

// ---- what a session keeps ----

/** The claims that a policy's rules name: all others stay at the provider, as a cookie has 4 KiB. */
export const namedClaims = ({ rules }: Policy): readonly string[] => {
  const names = new Set<string>();
  for (const rule of rules) {
    if ('auth' in rule) for (const name of Object.keys(rule.auth.login?.claims ?? {})) names.add(name);
  }
  return [...names].sort();
};

interface SessionRules {
  readonly claims: readonly string[];
  readonly sessionSecs: number;
  readonly nowMs: number;
}

/** Of an ID token that was checked. null: it names nobody. */
export const sessionFrom = (token: Readonly<Record<string, unknown>>, rules: SessionRules): LoggedIn | null => {
  const own = (name: string): unknown => (Object.hasOwn(token, name) ? token[name] : undefined);
  const sub = own('sub');
  if (typeof sub !== 'string' || sub === '') return null;
  const email = own('email');
  const claims: [string, readonly string[]][] = [];
  for (const name of rules.claims) {
    const values = claimValues(name, own(name));
    if (values.length > 0) claims.push([name, values]);
  }
  return {
    sub,
    email: typeof email === 'string' && email !== '' ? email : null,
    // Nothing but true: some providers send the text "false".
    emailVerified: own('email_verified') === true,
    claims: Object.fromEntries(claims),
    expiresAt: Math.floor(rules.nowMs / 1000) + rules.sessionSecs,
  };
};
