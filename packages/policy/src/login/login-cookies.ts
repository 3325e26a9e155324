// The cookies of a login: their names, how they are set and cleared, found in a request, and kept from the service.

import type { HeaderField } from '@tunnel/http1';
import { POLICY_BOUNDS } from '../limits.ts';

/** logins under way in one browser: each has a cookie, and the oldest is dropped */
export const POLICY_PENDING_LOGINS_MAX = 4;

type Scheme = 'http' | 'https';

/** Over https no sibling of the domain can set a cookie of this name (`__Host-`): there no other name counts. */
const loginCookieName = (scheme: Scheme): string => (scheme === 'https' ? '__Host-tunnel_login' : 'tunnel_login');

/** Of one login under way; `id` has 8 hex digits. */
const pendingCookieName = (scheme: Scheme, id: string): string => `${loginCookieName(scheme)}_${id}`;

/** All that the edge sets, in any case: a service might not tell it. */
const EDGE_COOKIE = /^(?:__host-)?tunnel_login(?:_[0-9a-f]{8})?$/i;

const isEdgeCookie = (name: string): boolean => EDGE_COOKIE.test(name);

const attributes = (scheme: Scheme, maxAgeSecs: number): string =>
  `Path=/; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Lax${scheme === 'https' ? '; Secure' : ''}`;

/** Of somebody who has logged in: a value of Set-Cookie. `value` is sealed, and of characters that a cookie may have. */
export const loginCookie = (scheme: Scheme, value: string, maxAgeSecs: number): string =>
  `${loginCookieName(scheme)}=${value}; ${attributes(scheme, maxAgeSecs)}`;

export const pendingCookie = (scheme: Scheme, id: string, value: string): string =>
  `${pendingCookieName(scheme, id)}=${value}; ${attributes(scheme, POLICY_BOUNDS.POLICY_PENDING_LOGIN_SECS)}`;

export const clearedLoginCookie = (scheme: Scheme): string => loginCookie(scheme, '', 0);

/** Of logins under way, by their ids. */
export const clearedCookies = (scheme: Scheme, ids: Iterable<string>): string[] =>
  Array.from(ids, (id) => `${pendingCookieName(scheme, id)}=; ${attributes(scheme, 0)}`);

// ---- of a request ----

const EMPTY: ReadonlyMap<string, string> = new Map();
const NONE: readonly string[] = [];

/** Cheap, and asked of each request: whether there may be any. */
const mayHave = (value: string): boolean => /tunnel_login/i.test(value);

/** `Accept` and `Origin` are as long, and nearly everybody sends them. */
const isCookieField = (field: HeaderField): boolean => {
  if (field.nameLength !== 6) return false;
  const { name } = field;
  return (name.charCodeAt(0) | 0x20) === LETTER_C && name.toLowerCase() === 'cookie';
};

const LETTER_C = 0x63;

/** `name=value` pairs of all Cookie fields, in their order. */
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

/** Values of the login cookie, as they came; there may be several, as over plain http a sibling can set one, too. */
export const sealedLogins = (headers: readonly HeaderField[], scheme: Scheme): readonly string[] => {
  const wanted = loginCookieName(scheme);
  let values = NONE;
  for (const field of headers) {
    if (!isCookieField(field)) continue;
    values = withSealed(values, field.value, wanted);
  }
  return values;
};

/** Of all pairs only those are cut out that have the name somewhere. */
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

/** The name of a cookie's pair; empty for a pair without `=`. */
const nameOf = (pair: string, equals: number): string => (equals === -1 ? '' : pair.slice(0, equals).trim());

/** Logins under way, by id: browsers send the oldest first (RFC 6265, 5.4). */
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
 * What the service gets of all Cookie fields; '': nothing is left; null: there is none of ours, so all stays as it came. Asked of each request of
 * every tunnel: most have none, and cost a look at the lengths of their names.
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

/** Of a service's Set-Cookie: the name that a browser would take from it. One that begins with `=` has none, and is sent back as what follows. */
export const isEdgeSetCookie = (value: string): boolean => {
  const pair = (value.split(';', 1)[0] ?? '').replace(/^[\s=]+/, '');
  const equals = pair.indexOf('=');
  return isEdgeCookie((equals === -1 ? pair : pair.slice(0, equals)).trim());
};
