// The guard in front of URLs that strangers name: a server must not be talked into requests that only it can make (SSRF).
// What is told about a URL is its host: path and query may be secrets.
import { isIP } from 'node:net';
import { unlessAborted } from '../unless-aborted.ts';
import { createNameLookup, type NameLookup } from './name-lookup.ts';

/** a longer URL is not read at all */
const FETCH_URL_MAX_CHARS = 2048;

/** Why nothing may be sent to an address ("a private address"), or null. The rule is problemOfAddress of the rules package, and handed in. */
export type AddressRule = (address: string) => string | null;

export type UrlReading =
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'refused'; readonly host: string; readonly reason: string };

export type UrlVerdict =
  /** Every address has passed; the request goes to one of these, whatever the name says by then. */
  | { readonly kind: 'pinned'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused' | 'unresolved'; readonly reason: string };

export interface UrlGuardDeps {
  readonly problemOfAddress: AddressRule;
  readonly lookup?: NameLookup | undefined;
}

export class UrlGuard {
  readonly #problemOfAddress: AddressRule;
  readonly #lookup: NameLookup;

  constructor({ problemOfAddress, lookup }: UrlGuardDeps) {
    this.#problemOfAddress = problemOfAddress;
    this.#lookup = lookup ?? createNameLookup();
  }

  /** What can be said without asking anyone. The fragment is cut off: it is never sent. */
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

  /** Asks for the name once. One address that does not pass is enough: the resolver's order must not decide. */
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
      // Not which address: what names inside our network resolve to is no stranger's business.
      if (problem !== null) return { kind: 'refused', reason: `${hostname} resolves to ${problem}` };
    }
    return { kind: 'pinned', addresses };
  }
}

/** The address that stands in the URL itself, or null. The URL parser has turned every spelling of it into the usual one. */
export const addressIn = ({ hostname }: URL): string | null => {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return isIP(hostname) === 4 ? hostname : null;
};

const refuse = (host: string, reason: string): UrlReading => ({ kind: 'refused', host, reason });
