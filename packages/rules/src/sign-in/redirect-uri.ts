// Valid redirect URIs of authorization requests: https, or http to the requesting machine. Any other scheme could run code in the page
// (`javascript:`) or open any program. URIs are checked as text, because a parser that repairs a URI would send the response to another
// place.

import ipaddr from 'ipaddr.js';
import { RULE_LIMITS } from '../limits.ts';

const HOST = '(?:[a-z0-9-]+(?:\\.[a-z0-9-]+)*\\.?|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?';
/** Pattern of the path and query of a redirect URI: no blank, no backslash (parsers read it as a slash), and no fragment. */
const REST = '(?:[/?][!-"$-\\[\\]-~]*)?';
const HTTPS = new RegExp(`^https://${HOST}${REST}$`, 'i');
const LOOPBACK = new RegExp(`^(http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]))(?::\\d{1,5})?(${REST})$`);

/** Returns the end of the sentence "a redirect URI …", or null if the URI is valid. */
export const problemOfRedirectUri = (uri: string): string | null => {
  if (uri.length > RULE_LIMITS.OAUTH_URI_MAX_CHARS) return 'is too long';
  if (/#/.test(uri)) return 'has a fragment';
  if (/^https?:\/\/[^/?]*@/i.test(uri)) return 'has a user name in it';
  if (HTTPS.test(uri) || LOOPBACK.test(uri)) return isHostAsShown(uri) ? null : 'is not a URL';
  if (/^http:\/\//i.test(uri)) return 'is http and not on localhost, 127.0.0.1 or [::1]';
  return /^https:/i.test(uri) ? 'is not a URL' : 'is neither https nor http on localhost';
};

/** Compares exactly, but allows any port for a program on the user's machine, which uses a free port (RFC 8252, 7.3). */
export const allowsRedirectUri = (registered: readonly string[], asked: string): boolean => {
  const wanted = withoutPort(asked);
  return registered.some((uri) => uri === asked || (wanted !== null && withoutPort(uri) === wanted));
};

/** Removes the port from a loopback redirect URI. Returns null for a URI that is not on the user's machine. */
const withoutPort = (uri: string): string | null => {
  const [, origin, rest] = LOOPBACK.exec(uri) ?? [];
  return origin === undefined ? null : `${origin}${rest}`;
};

/** Host of a redirect URI, with port if given, as shown to people who authorize a program. */
export const hostOfUri = (uri: string): string => /^\w+:\/\/([^/?#]*)/.exec(uri)?.[1]?.toLowerCase() ?? '';

/**
 * Returns whether browsers contact the host that people see: browsers read `0x7f.1` and `2130706433` as 127.0.0.1 and fail at `:99999`
 * after the authorization. The form of the URI must be checked before.
 */
export const isHostAsShown = (uri: string): boolean => {
  const [, host = '', port = '0'] = /^(.*?)(?::(\d+))?$/.exec(hostOfUri(uri)) ?? [];
  if (Number(port) > 0xffff) return false;
  if (host.startsWith('[')) return isUsualV6(host.slice(1, -1));
  // Parsers recognize an IPv4 address, in any spelling, by its last label.
  if (!/(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/.test(host)) return true;
  return ipaddr.IPv4.isValidFourPartDecimal(host) && ipaddr.IPv4.parse(host).toString() === host;
};

const isUsualV6 = (host: string): boolean => ipaddr.IPv6.isValid(host) && ipaddr.IPv6.parse(host).toString() === host;

/** Appends parameters to the query of a redirect URI. Null values are omitted. */
export const withAnswer = (uri: string, answer: Readonly<Record<string, string | null>>): string => {
  const parts = Object.entries(answer).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (!uri.includes('?')) return `${uri}?${parts.join('&')}`;
  return `${uri}${/[?&]$/.test(uri) ? '' : '&'}${parts.join('&')}`;
};
