// The sign-in flow from the first redirect to the session, as pure functions: pending state, checks of the callback, and named failures.
//
//   asked ─► begun ─► (provider) ─► callback ─► go ─► (token request) ─► session ─► returned
//              │                       └─► a CallbackRefusal                └─► null: the token has no subject
//              └─► the provider is unreachable

import { Fault, type FaultValues } from '@tunnel/errors';
import { isVisible } from '@tunnel/http1';
import { POLICY_BOUNDS } from '../limits.ts';
import type { Policy } from '../policy.ts';
import type { LoggedIn } from '../policy-step.ts';
import { claimValues } from './authentication.ts';

/** Maximum length of the path to return to after a sign-in, which is stored in a cookie. A longer path loses its query or becomes `/`. */
const POLICY_RETURN_PATH_MAX_CHARS = 2 * 1024;

/** Paths served by the edge, only on tunnels with a login provider. */
export const CALLBACK_PATH = '/.tunnel/callback';
export const LOGOUT_PATH = '/.tunnel/logout';

/** State of a pending sign-in, encrypted in a cookie. Only the browser that began the sign-in can finish it. */
export interface PendingLogin {
  /** Id of the pending sign-in, 8 hex digits: the suffix of its cookie's name. */
  readonly id: string;
  /** Second part of the OAuth state, because the short id could be guessed. */
  readonly secret: string;
  readonly nonce: string;
  /** PKCE code verifier of the sign-in: makes an intercepted authorization code useless. */
  readonly verifier: string;
  readonly returnPath: string;
  /** When the pending sign-in expires, as Unix time in seconds. */
  readonly expiresAt: number;
}

/** Random values of a new sign-in, in hex or base64url. `id` has 8 hex digits. */
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

/** The `state` of the authorization request. For an operator's provider it is later encrypted together with the tunnel's address. */
export const loginState = ({ id, secret }: PendingLogin): string => `${id}.${secret}`;

type CallbackRefusal =
  | 'query-unclear'
  | 'state-missing'
  /**
   * No cookie of this browser decrypts: the sign-in belongs to another browser or tunnel, the edge's secret changed, or the state was used
   * already.
   */
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
 * Checks a callback. `query` includes the `?`; `pendingById` contains the pending sign-ins of this browser's decrypted cookies. The state
 * is checked first, because the rest of the query is untrusted until then.
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
  if (!isSameText(loginState(pending), state)) return refused('state-foreign');
  if (pending.expiresAt * 1000 <= nowMs) return refused('state-expired');
  const error = values.get('error');
  if (error !== undefined) return refused(OF_THE_PERSON.has(error) ? 'provider-refused' : 'provider-failed');
  const code = values.get('code');
  if (code === undefined || code === '') return refused('code-missing');
  return { kind: 'go', pending, code, issuer: values.get('iss') ?? null };
};

/** OAuth errors caused by the person's decision or permissions (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const OF_THE_PERSON: ReadonlySet<string> = new Set([
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/** Compares two texts in constant time. */
const isSameText = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
};

/** Parses a query. Returns null for a repeated name or invalid encoding, which two parsers could read differently. */
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

// ---- return path ----

/**
 * Returns path and query to go back to on the same host. The result starts with exactly one slash, because browsers take `//x` and `/\x`
 * for another host, and contains no line break. A path too long for the cookie loses its query or becomes `/`.
 */
export const returnPathOf = (path: string): string => {
  const own = `/${path.replace(/^[/\\]+/, '')}`;
  if (!path.startsWith('/') || !isVisible(own)) return '/';
  const [plain = '/'] = own.split('?', 1);
  if (plain === CALLBACK_PATH || plain === LOGOUT_PATH) return '/';
  if (own.length <= POLICY_RETURN_PATH_MAX_CHARS) return own;
  return plain.length <= POLICY_RETURN_PATH_MAX_CHARS ? plain : '/';
};

// ---- sessions ----

/** Names of the claims used in a policy's rules. A session keeps no other claims, because a cookie is limited to 4 KiB. */
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

/** Creates a session from a verified ID token. Returns null if the token has no subject. */
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
    // Only `true` counts as a verified e-mail address, because some providers send the string "false".
    emailVerified: own('email_verified') === true,
    claims: Object.fromEntries(claims),
    expiresAt: Math.floor(rules.nowMs / 1000) + rules.sessionSecs,
  };
};
