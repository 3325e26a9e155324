// Parses the four forms of a request target (RFC 9112, 3.2) and the host of an authority.

import { classAt, DIGIT, HEX, HOST, UPPER } from './characters.ts';
import { HTTP1_LIMITS } from './limits.ts';

export interface Target {
  readonly kind: 'target';
  /** Path and query of the target (origin-form), or `*`. */
  readonly path: string;
  /** Authority of a target in absolute form; null if the authority is in Host. */
  readonly authority: string | null;
}

type TargetReading = Target | { readonly kind: 'bad-target'; readonly reason: string };

/** Parses a target. The caller has checked that the target is visible ASCII and that the method is not CONNECT. */
export const readTarget = (method: string, target: string): TargetReading => {
  if (target.charCodeAt(0) === 0x2f) return { kind: 'target', path: target, authority: null };
  if (target === '*') {
    if (method === 'OPTIONS') return { kind: 'target', path: '*', authority: null };
    return { kind: 'bad-target', reason: 'the target * is for OPTIONS only' };
  }
  return readAbsoluteForm(method, target);
};

const readAbsoluteForm = (method: string, target: string): TargetReading => {
  const schemeEnd = target.indexOf('://');
  const scheme = schemeEnd === -1 ? '' : target.slice(0, schemeEnd).toLowerCase();
  if (scheme !== 'http' && scheme !== 'https') {
    return { kind: 'bad-target', reason: 'the request target is not a path' };
  }
  const from = schemeEnd + 3;
  let at = from;
  while (at < target.length && target[at] !== '/' && target[at] !== '?') at += 1;
  const authority = target.slice(from, at);
  const rest = target.slice(at);
  if (rest.startsWith('/')) return { kind: 'target', path: rest, authority };
  // OPTIONS for a URL without a path asks about the server as a whole (RFC 9112, 3.2.4).
  if (rest === '' && method === 'OPTIONS') return { kind: 'target', path: '*', authority };
  return { kind: 'target', path: `/${rest}`, authority };
};

/**
 * Returns true for a valid `host_header` setting, which determines the Host header for the service: the visitor's host (`keep`), the
 * service's address (`rewrite`), or a fixed authority.
 */
export const isHostHeader = (value: string): boolean =>
  value === 'keep' || value === 'rewrite' || hostOfAuthority(value) !== null;

const OPEN = 0x5b;
const CLOSE = 0x5d;
const COLON = 0x3a;
const DOT = 0x2e;

/**
 * Returns the host of `host[:port]` from a Host field or a target: in lower case, without the port, and with brackets around an IPv6
 * address. Strict: returns null for any text that cannot be routed unambiguously.
 */
export const hostOfAuthority = (authority: string): string | null => {
  if (authority.length === 0 || authority.length > HTTP1_LIMITS.HTTP_AUTHORITY_MAX_CHARS) return null;
  if (authority.charCodeAt(0) === OPEN) return hostBefore(authority, endOfLiteral(authority), true);
  let end = 0;
  let seen = 0;
  while (end < authority.length) {
    const bits = classAt(authority, end);
    if ((bits & HOST) === 0) break;
    seen |= bits;
    end += 1;
  }
  return hostBefore(authority, end, (seen & UPPER) !== 0);
};

const hostBefore = (authority: string, end: number, mayHaveUpper: boolean): string | null => {
  if (end <= 0 || !isPort(authority, end)) return null;
  const host = end === authority.length ? authority : authority.slice(0, end);
  return mayHaveUpper ? host.toLowerCase() : host;
};

/** Returns the end of an IPv6 literal such as `[::1]`, or -1. The groups are not validated, because no tunnel is named by an address. */
const endOfLiteral = (authority: string): number => {
  let at = 1;
  let colons = 0;
  for (; at < authority.length; at += 1) {
    const code = authority.charCodeAt(at);
    if (code === COLON) colons += 1;
    else if (code !== DOT && (classAt(authority, at) & HEX) === 0) break;
  }
  return colons >= 2 && authority.charCodeAt(at) === CLOSE ? at + 1 : -1;
};

/** Returns true if the rest is empty, or a colon and at most five digits. `host:` is legal and means the default port. */
const isPort = (authority: string, from: number): boolean => {
  if (from === authority.length) return true;
  if (authority.charCodeAt(from) !== COLON || authority.length - from > 6) return false;
  let port = 0;
  for (let at = from + 1; at < authority.length; at += 1) {
    if ((classAt(authority, at) & DIGIT) === 0) return false;
    port = port * 10 + authority.charCodeAt(at) - 0x30;
  }
  return port <= 65_535;
};
