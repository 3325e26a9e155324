// The guard in front of tenants' alert URLs: an edge must not be talked into requests that only it can make (SSRF).
// What is told about a URL is its host: path and query are the tenant's secrets.
import { isIP } from 'node:net';
import { problemOfAddress } from '@tunnel/core';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import { createNameLookup, type NameLookup } from './name-lookup.ts';

export type AlertUrlReading =
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'refused'; readonly host: string; readonly reason: string };

export type AlertUrlVerdict =
  /** Every address has passed; the request goes to one of these, whatever the name says by then. */
  | { readonly kind: 'pinned'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused' | 'unresolved'; readonly reason: string };

export interface AlertUrlsDeps {
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly lookup?: NameLookup | undefined;
}

export class AlertUrls {
  readonly #allowPrivate: boolean;
  readonly #clock: Clock;
  readonly #lookup: NameLookup;
  #checksUnderWay = 0;

  constructor({ allowPrivate, clock, lookup }: AlertUrlsDeps) {
    this.#allowPrivate = allowPrivate;
    this.#clock = clock;
    this.#lookup = lookup ?? createNameLookup();
  }

  /** What can be said without asking anyone. The fragment is cut off: it is never sent. */
  read(text: string): AlertUrlReading {
    if (text.length > EDGE_LIMITS.ALERT_URL_MAX_CHARS) return refuse('', 'it is too long');
    if (!URL.canParse(text)) return refuse('', 'it is not a URL');
    const url = new URL(text);
    url.hash = '';
    const { host, hostname, protocol } = url;
    if (protocol !== 'http:' && protocol !== 'https:') return refuse(host, 'it is not an http or https URL');
    if (url.username !== '' || url.password !== '')
      return refuse(host, `the URL for ${hostname} has a user name in it`);
    const literal = literalOf(url);
    const problem = literal === null ? null : problemOfAddress(literal, this.#allowPrivate);
    return problem === null ? { kind: 'url', url } : refuse(host, `${hostname} is ${problem}`);
  }

  /** Asks for the name once. One address that does not pass is enough: the resolver's order must not decide. */
  async pin(url: URL, signal: AbortSignal): Promise<AlertUrlVerdict> {
    const { hostname } = url;
    const literal = literalOf(url);
    if (literal !== null) return this.#judge(hostname, [literal]);
    try {
      return this.#judge(hostname, await unlessAborted(this.#lookup(hostname, signal), signal));
    } catch {
      return { kind: 'unresolved', reason: `${hostname} does not resolve` };
    }
  }

  /**
   * A warning for the tenant, or null. It never holds up a registration for long, and no longer than `withinMs`; the alert
   * is checked in any case.
   */
  async checkAtRegistration(
    text: string,
    withinMs: number = EDGE_LIMITS.ALERT_LOOKUP_TIMEOUT_MS,
  ): Promise<string | null> {
    const reading = this.read(text);
    if (reading.kind === 'refused') return warningOf(reading);
    const waitMs = Math.min(withinMs, EDGE_LIMITS.ALERT_LOOKUP_TIMEOUT_MS);
    if (literalOf(reading.url) !== null || waitMs <= 0 || this.#checksUnderWay >= EDGE_LIMITS.ALERT_LOOKUPS_AT_ONCE)
      return null;
    const deadline = new AbortController();
    const timer = this.#clock.setTimeout(() => deadline.abort(), waitMs);
    this.#checksUnderWay += 1;
    try {
      const verdict = await this.pin(reading.url, deadline.signal);
      return verdict.kind === 'pinned' || deadline.signal.aborted ? null : warningOf(verdict);
    } finally {
      this.#checksUnderWay -= 1;
      timer.cancel();
    }
  }

  #judge(hostname: string, addresses: readonly string[]): AlertUrlVerdict {
    if (addresses.length === 0) return { kind: 'unresolved', reason: `${hostname} does not resolve` };
    for (const address of addresses) {
      const problem = problemOfAddress(address, this.#allowPrivate);
      // Not which address: what names inside our network resolve to is no tenant's business.
      if (problem !== null) return { kind: 'refused', reason: `${hostname} resolves to ${problem}` };
    }
    return { kind: 'pinned', addresses };
  }
}

const refuse = (host: string, reason: string): AlertUrlReading => ({ kind: 'refused', host, reason });

const warningOf = ({ kind, reason }: { readonly kind: 'refused' | 'unresolved'; readonly reason: string }): string =>
  kind === 'refused' ? `alert webhook refused: ${reason}` : `alert webhook: ${reason} at present`;

/** The address that stands in the URL itself, or null. The URL parser has turned every spelling of it into the usual one. */
const literalOf = ({ hostname }: URL): string | null => {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return isIP(hostname) === 4 ? hostname : null;
};

const unlessAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new Error('too slow'));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
