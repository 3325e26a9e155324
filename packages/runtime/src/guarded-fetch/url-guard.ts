// Protects against server-side request forgery (SSRF) by URLs of strangers. Messages only contain the host, because path and query may be
// secrets.
import { isIP } from 'node:net';
import { unlessAborted } from '../unless-aborted.ts';
import { createNameLookup, type NameLookup } from './name-lookup.ts';

/** Maximum length of a URL to fetch. */
const FETCH_URL_MAX_CHARS = 2048;

/**
 * Returns why an address must not be contacted ("a private address"), or null. Passed in; the rule is problemOfAddress of the rules
 * package.
 */
export type AddressRule = (address: string) => string | null;

export type UrlReading =
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'refused'; readonly host: string; readonly reason: string };

export type UrlVerdict =
  /** All addresses of the URL's host are allowed. The request goes to one of them, even if the name changes. */
  | { readonly kind: 'pinned'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused' | 'unresolved'; readonly reason: string };

export interface UrlGuardOptions {
  readonly problemOfAddress: AddressRule;
  readonly lookup?: NameLookup | undefined;
}

export class UrlGuard {
  readonly #problemOfAddress: AddressRule;
  readonly #lookup: NameLookup;

  constructor({ problemOfAddress, lookup }: UrlGuardOptions) {
    this.#problemOfAddress = problemOfAddress;
    this.#lookup = lookup ?? createNameLookup();
  }

  /** Checks a URL without a lookup. Removes the fragment, which is never sent. */
  read(text: string): UrlReading {
    if (text.length > FETCH_URL_MAX_CHARS) return refuse('', 'it is too long');
    if (!URL.canParse(text)) return refuse('', 'it is not a URL');
    const url = new URL(text);
    url.hash = '';
    const { host, hostname, protocol } = url;
    if (protocol !== 'http:' && protocol !== 'https:') return refuse(host, 'it is not an http or https URL');
    if (url.username !== '' || url.password !== '')
      return refuse(host, `the URL for ${hostname} has a user name in it`);
    const literal = addressIn(url);
    const problem = literal === null ? null : this.#problemOfAddress(literal);
    return problem === null ? { kind: 'url', url } : refuse(host, `${hostname} is ${problem}`);
  }

  /** Resolves the name once. A single forbidden address rejects the URL, so that the resolver's order does not matter. */
  async pin(url: URL, signal: AbortSignal): Promise<UrlVerdict> {
    const { hostname } = url;
    const literal = addressIn(url);
    if (literal !== null) return this.#judge(hostname, [literal]);
    try {
      return this.#judge(hostname, await unlessAborted(this.#lookup(hostname, signal), signal));
    } catch {
      return { kind: 'unresolved', reason: `${hostname} does not resolve` };
    }
  }

  #judge(hostname: string, addresses: readonly string[]): UrlVerdict {
    if (addresses.length === 0) return { kind: 'unresolved', reason: `${hostname} does not resolve` };
    for (const address of addresses) {
      const problem = this.#problemOfAddress(address);
      // The address is not named, because strangers must not learn the addresses of internal names.
      if (problem !== null) return { kind: 'refused', reason: `${hostname} resolves to ${problem}` };
    }
    return { kind: 'pinned', addresses };
  }
}

/** The IP address in the URL, or null. The URL parser has normalized its spelling. */
export const addressIn = ({ hostname }: URL): string | null => {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return isIP(hostname) === 4 ? hostname : null;
};

const refuse = (host: string, reason: string): UrlReading => ({ kind: 'refused', host, reason });
