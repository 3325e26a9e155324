// What the name of an own domain may be: a host name in its A-label form, or `*.` and one. Nothing of the operator's.

import { Fault } from '@tunnel/errors';
import { isLabel, isOfDomain, shownText } from '@tunnel/rules/names';

/** a name of DNS has no more; with labels of one character it has 127 of them */
const DOMAIN_NAME_MAX_CHARS = 253;

export interface DomainName {
  /** As it is kept and shown: in lower case, without a trailing dot, with its `*.`. */
  readonly name: string;
  /** Without the `*.`: the name itself, or of a wildcard the name that it stands right below. */
  readonly host: string;
  readonly wildcard: boolean;
}

export interface DomainNameFacts {
  /** `domainToASCII` of node:url, for names with other letters than those of ASCII; an empty text for what is no host name. */
  readonly toAscii: (name: string) => string;
  /** `[server] domain`, and the platform's host: neither they nor a name below them can be an account's own. */
  readonly operatorsHosts: readonly string[];
}

export type DomainNameReading =
  | { readonly kind: 'name'; readonly domain: DomainName }
  /** `reason`: what is wrong with it, for whoever says it in other words. */
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
/** What would begin another part of a URL, or be decoded: `domainToASCII` reads as a browser does, and a name is no URL. */
const NOT_IN_NAMES = /[\s%/\\:@?#[\]<>^|*_\p{Cc}]/u;

/**
 * null: no host name. One of ASCII is taken as it is, its `xn--` labels as well: which of those stand for letters depends on the tables of the Node
 * that reads them, and edge, platform and tomorrow's Node must read the same.
 */
const hostOf = (text: string, toAscii: (name: string) => string): string | null => {
  // Before it is mapped, which takes time by its length; no name gets shorter by it.
  if (text.length > DOMAIN_NAME_MAX_CHARS + 1 || NOT_IN_NAMES.test(text)) return null;
  const name = text.endsWith('.') ? text.slice(0, -1) : text;
  if (ASCII.test(name)) return name.toLowerCase();
  const host = toAscii(name);
  return host === '' ? null : host;
};

/** No top-level domain is a number: what ends in one is an address to somebody, `0x7f.1` as much as `127.0.0.1`. */
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
