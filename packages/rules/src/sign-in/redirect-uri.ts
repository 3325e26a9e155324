// Where the answer to an authorization request may go: https, or http to the machine that asks. Any other scheme would run inside the
// page that leads there (`javascript:`) or open any program. Read as text: a parser that mends a URI sends the answer to another place.

import ipaddr from 'ipaddr.js';
import { RULE_LIMITS } from '../limits.ts';

const HOST = '(?:[a-z0-9-]+(?:\\.[a-z0-9-]+)*\\.?|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?';
/** No space, no backslash, which parsers take for a slash, and no fragment. */
const REST = '(?:[/?][!-"$-\\[\\]-~]*)?';
const HTTPS = new RegExp(`^https://${HOST}${REST}$`, 'i');
const LOOPBACK = new RegExp(`^(http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]))(?::\\d{1,5})?(${REST})$`);

/** Completes "a redirect URI …"; null: it will do. */
export const problemOfRedirectUri = (uri: string): string | null => {
  if (uri.length > RULE_LIMITS.OAUTH_URI_MAX_CHARS) return 'is too long';
  if (/#/.test(uri)) return 'has a fragment';
  if (/^https?:\/\/[^/?]*@/i.test(uri)) return 'has a user name in it';
  if (HTTPS.test(uri) || LOOPBACK.test(uri)) return isHostAsShown(uri) ? null : 'is not a URL';
  if (/^http:\/\//i.test(uri)) return 'is http and not on localhost, 127.0.0.1 or [::1]';
  return /^https:/i.test(uri) ? 'is not a URL' : 'is neither https nor http on localhost';
};

/** To the letter; of a program on the user's machine any port, as it takes one that is free (RFC 8252, 7.3). */
export const allowsRedirectUri = (registered: readonly string[], asked: string): boolean => {
  const wanted = withoutPort(asked);
  return registered.some((uri) => uri === asked || (wanted !== null && withoutPort(uri) === wanted));
};

/** null: not of the user's machine. */
const withoutPort = (uri: string): string | null => {
  const [, origin, rest] = LOOPBACK.exec(uri) ?? [];
  return origin === undefined ? null : `${origin}${rest}`;
};

/** Host, and port if it is named: as people are shown where the answer goes. */
export const hostOfUri = (uri: string): string => /^\w+:\/\/([^/?#]*)/.exec(uri)?.[1]?.toLowerCase() ?? '';

/**
 * Whether browsers go where people read that they go: they take `0x7f.1` and `2130706433` for 127.0.0.1, and `:99999` for nothing, when the
 * answer is given already. Of a URI whose form was looked at.
 */
export const isHostAsShown = (uri: string): boolean => {
  const [, host = '', port = '0'] = /^(.*?)(?::(\d+))?$/.exec(hostOfUri(uri)) ?? [];
  if (Number(port) > 0xffff) return false;
  if (host.startsWith('[')) return isUsualV6(host.slice(1, -1));
  // By the last label parsers tell an address, in any of its spellings.
  if (!/(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/.test(host)) return true;
  return ipaddr.IPv4.isValidFourPartDecimal(host) && ipaddr.IPv4.parse(host).toString() === host;
};

const isUsualV6 = (host: string): boolean => ipaddr.IPv6.isValid(host) && ipaddr.IPv6.parse(host).toString() === host;

/** What is answered, behind what the URI has already; `null` is left out. */
export const withAnswer = (uri: string, answer: Readonly<Record<string, string | null>>): string => {
  const parts = Object.entries(answer).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (!uri.includes('?')) return `${uri}?${parts.join('&')}`;
  return `${uri}${/[?&]$/.test(uri) ? '' : '&'}${parts.join('&')}`;
};
