// Cookies of a sign-in: sets, clears and finds them, and removes them from requests to the service.

import type { HeaderField } from '@tunnel/http1';
import { POLICY_BOUNDS } from '../limits.ts';

/** Maximum pending sign-ins per browser. Each has a cookie; the oldest is dropped. */
export const POLICY_PENDING_LOGINS_MAX = 4;

type Scheme = 'http' | 'https';

/**
 * Name of the login cookie. Over https the `__Host-` prefix keeps sibling domains from setting the cookie, so no other name is accepted.
 */
const loginCookieName = (scheme: Scheme): string => (scheme === 'https' ? '__Host-tunnel_login' : 'tunnel_login');

/** Cookie name of a pending sign-in. `id` has 8 hex digits. */
const pendingCookieName = (scheme: Scheme, id: string): string => `${loginCookieName(scheme)}_${id}`;

/** Matches every cookie of the edge, in any case, because a service might ignore case. */
const EDGE_COOKIE = /^(?:__host-)?tunnel_login(?:_[0-9a-f]{8})?$/i;

const isEdgeCookie = (name: string): boolean => EDGE_COOKIE.test(name);

const attributes = (scheme: Scheme, maxAgeSecs: number): string =>
  `Path=/; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Lax${scheme === 'https' ? '; Secure' : ''}`;

/** Set-Cookie value for a signed-in visitor. `value` is encrypted and contains only characters allowed in cookies. */
export const loginCookie = (scheme: Scheme, value: string, maxAgeSecs: number): string =>
  `${loginCookieName(scheme)}=${value}; ${attributes(scheme, maxAgeSecs)}`;

export const pendingCookie = (scheme: Scheme, id: string, value: string): string =>
  `${pendingCookieName(scheme, id)}=${value}; ${attributes(scheme, POLICY_BOUNDS.POLICY_PENDING_LOGIN_SECS)}`;

export const clearedLoginCookie = (scheme: Scheme): string => loginCookie(scheme, '', 0);

/** Returns Set-Cookie values that clear the cookies of pending sign-ins with these ids. */
export const clearedCookies = (scheme: Scheme, ids: Iterable<string>): string[] =>
  Array.from(ids, (id) => `${pendingCookieName(scheme, id)}=; ${attributes(scheme, 0)}`);

// ---- of a request ----

const EMPTY: ReadonlyMap<string, string> = new Map();
const NONE: readonly string[] = [];

/** Fast check for every request: returns false if the field surely has no edge cookie. */
const mayHave = (value: string): boolean => /tunnel_login/i.test(value);

/** Compares the first letter first, because `Accept` and `Origin` have the same length and are in nearly every request. */
const isCookieField = (field: HeaderField): boolean => {
  if (field.nameLength !== 6) return false;
  const { name } = field;
  return (name.charCodeAt(0) | 0x20) === LETTER_C && name.toLowerCase() === 'cookie';
};

const LETTER_C = 0x63;

/** Visits the `name=value` pairs of every Cookie field in order. */
const eachCookie = (headers: readonly HeaderField[], visit: (name: string, value: string) => void): void => {
  for (const field of headers) {
    if (!isCookieField(field) || !mayHave(field.value)) continue;
    for (const pair of field.value.split(';')) {
      const equals = pair.indexOf('=');
      if (equals !== -1) visit(pair.slice(0, equals).trim(), unquoted(pair.slice(equals + 1).trim()));
    }
  }
};

const unquoted = (value: string): string =>
  value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;

/**
 * Returns the values of the login cookie as received. Over plain http there may be several, because a sibling domain can set the cookie.
 */
export const sealedLogins = (headers: readonly HeaderField[], scheme: Scheme): readonly string[] => {
  const wanted = loginCookieName(scheme);
  let values = NONE;
  for (const field of headers) {
    if (!isCookieField(field)) continue;
    values = withSealed(values, field.value, wanted);
  }
  return values;
};

/** Adds the values of the wanted cookie from a Cookie field. Slices only the pairs that contain its name. */
const withSealed = (before: readonly string[], cookies: string, wanted: string): readonly string[] => {
  let values = before;
  let found = cookies.indexOf(wanted);
  while (found !== -1 && values.length < POLICY_PENDING_LOGINS_MAX) {
    const end = pairEnd(cookies, found);
    const pair = cookies.slice(cookies.lastIndexOf(';', found) + 1, end);
    const equals = pair.indexOf('=');
    const value = nameOf(pair, equals) === wanted ? unquoted(pair.slice(equals + 1).trim()) : '';
    if (value !== '') values = values === NONE ? [value] : [...values, value];
    found = cookies.indexOf(wanted, end);
  }
  return values;
};

const pairEnd = (cookies: string, from: number): number => {
  const semicolon = cookies.indexOf(';', from);
  return semicolon === -1 ? cookies.length : semicolon;
};

/** Returns the name in a `name=value` cookie pair, or '' for a pair without `=`. */
const nameOf = (pair: string, equals: number): string => (equals === -1 ? '' : pair.slice(0, equals).trim());

/** Values of pending sign-ins by id. Browsers send the oldest cookie first (RFC 6265, 5.4). */
export const pendingLogins = (headers: readonly HeaderField[], scheme: Scheme): ReadonlyMap<string, string> => {
  const prefix = `${loginCookieName(scheme)}_`;
  let pending: Map<string, string> | null = null;
  eachCookie(headers, (name, value) => {
    const id = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    if (!/^[0-9a-f]{8}$/.test(id)) return;
    pending ??= new Map();
    pending.set(id, value);
  });
  return pending ?? EMPTY;
};

/**
 * Returns the Cookie value for the service, '' if no cookie remains, or null if the fields contain no edge cookie and can stay as received.
 * Called for every request of every tunnel; most requests only cost a comparison of name lengths.
 */
export const cookieForService = (headers: readonly HeaderField[]): string | null => {
  for (const field of headers) if (isCookieField(field) && mayHave(field.value)) return keptOf(headers);
  return null;
};

const keptOf = (headers: readonly HeaderField[]): string | null => {
  let kept = '';
  let isCut = false;
  for (const field of headers) {
    if (!isCookieField(field)) continue;
    const { value } = field;
    for (let from = 0; from < value.length; ) {
      const end = pairEnd(value, from);
      const pair = value.slice(from, end).trim();
      const equals = pair.indexOf('=');
      if (isEdgeCookie(equals === -1 ? pair : nameOf(pair, equals))) isCut = true;
      else if (pair !== '') kept = kept === '' ? pair : `${kept}; ${pair}`;
      from = end + 1;
    }
  }
  return isCut ? kept : null;
};

/**
 * Returns true if a service's Set-Cookie would set an edge cookie. Browsers take a value that starts with `=` for a cookie without name and
 * send the rest back.
 */
export const isEdgeSetCookie = (value: string): boolean => {
  const pair = (value.split(';', 1)[0] ?? '').replace(/^[\s=]+/, '');
  const equals = pair.indexOf('=');
  return isEdgeCookie((equals === -1 ? pair : pair.slice(0, equals)).trim());
};
