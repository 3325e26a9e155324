// Validates names of custom domains: a host name in A-label form, optionally with `*.`. Names of the operator are rejected.

import { Fault } from '@tunnel/errors';
import { isLabel, isOfDomain, shownText } from '@tunnel/rules/names';

/** Maximum length of a DNS name, which allows 127 labels of one character. */
const DOMAIN_NAME_MAX_CHARS = 253;

export interface DomainName {
  /** Normalized name of the custom domain: lower case, without trailing dot, including `*.`. */
  readonly name: string;
  /** Name of the custom domain without `*.`; for a wildcard its parent. */
  readonly host: string;
  readonly wildcard: boolean;
}

export interface DomainNameFacts {
  /** `domainToASCII` of node:url, for names with non-ASCII letters. Returns '' for an invalid name. */
  readonly toAscii: (name: string) => string;
  /** `[server] domain` and the platform's host. Accounts cannot add them or names below. */
  readonly operatorsHosts: readonly string[];
}

export type DomainNameReading =
  | { readonly kind: 'name'; readonly domain: DomainName }
  /** The domain's name is not allowed. `reason` can be used in another message. */
  | { readonly kind: 'refused'; readonly reason: string; readonly fault: Fault };

const WILDCARD = '*.';

export const readDomainName = (text: string, facts: DomainNameFacts): DomainNameReading => {
  const wildcard = text.startsWith(WILDCARD);
  const host = hostOf(wildcard ? text.slice(WILDCARD.length) : text, facts.toAscii);
  const reason = problemOfHost(host, facts.operatorsHosts);
  if (host === null || reason !== null) {
    const said = reason ?? '';
    return {
      kind: 'refused',
      reason: said,
      fault: new Fault('DOMAIN_INVALID', { domain: shownText(text), reason: said }),
    };
  }
  return { kind: 'name', domain: { name: wildcard ? WILDCARD + host : host, host, wildcard } };
};

const ASCII = /^[\x21-\x7e]*$/;
/** Characters that start another part of a URL or are decoded: `domainToASCII` parses like a browser, but a name is no URL. */
const NOT_IN_NAMES = /[\s%/\\:@?#[\]<>^|*_\p{Cc}]/u;

/**
 * Returns null for an invalid host name. ASCII names are used unchanged, including `xn--` labels, because their validity depends on Node's
 * Unicode tables, and edge, platform and later versions must agree.
 */
const hostOf = (text: string, toAscii: (name: string) => string): string | null => {
  // The length is checked before the mapping to ASCII, which takes time by length and never shortens a name.
  if (text.length > DOMAIN_NAME_MAX_CHARS + 1 || NOT_IN_NAMES.test(text)) return null;
  const name = text.endsWith('.') ? text.slice(0, -1) : text;
  if (ASCII.test(name)) return name.toLowerCase();
  const host = toAscii(name);
  return host === '' ? null : host;
};

/** Top-level domains are never numeric. A numeric ending is an address to some parsers: `0x7f.1` like `127.0.0.1`. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/;

const problemOfHost = (host: string | null, operatorsHosts: readonly string[]): string | null => {
  if (host === null) return 'it is not a host name';
  if (host.length > DOMAIN_NAME_MAX_CHARS) {
    return `it is longer than ${DOMAIN_NAME_MAX_CHARS} characters`;
  }
  const labels = host.split('.');
  if (!labels.every(isLabel)) return 'it is not a host name';
  if (NUMBER.test(labels.at(-1) ?? '')) return 'it is an address, not a name';
  if (labels.length < 2) return 'a domain needs at least two labels';
  const operators = operatorsHosts.find((own) => isOfDomain(host, own));
  return operators === undefined ? null : `names of ${operators} belong to this server; reserve a subdomain instead`;
};
