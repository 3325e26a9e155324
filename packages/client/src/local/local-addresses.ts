// Addresses of a tunnel's local service. A name is looked up once for many visitors. If the service does not listen on the first address,
// the next address is tried (`localhost` is ::1 on some machines and 127.0.0.1 on others).
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** Time for which the looked-up addresses of a local service's host are cached, failures included. */
export const LOCAL_LOOKUP_VALID_MS = 5000;

export interface LocalAddress {
  readonly address: string;
  readonly family: number;
}

/** Looks up the IP addresses of a host. Rejects if the host has no address. */
export type FindAddresses = (host: string) => Promise<readonly LocalAddress[]>;

const findAddresses: FindAddresses = (host) => lookup(host, { all: true });

export class LocalAddresses {
  readonly #host: string;
  readonly #find: FindAddresses;
  readonly #isLiteral: boolean;
  #known: readonly LocalAddress[] = [];
  #turn = 0;
  #lookedUpAt = Number.NEGATIVE_INFINITY;
  #lookup: Promise<readonly LocalAddress[]> | null = null;

  constructor(host: string, find = findAddresses) {
    this.#host = host;
    this.#find = find;
    const family = isIP(host);
    this.#isLiteral = family !== 0;
    if (this.#isLiteral) this.#known = [{ address: host, family }];
  }

  /** Returns the address to use, or null if a lookup is needed first. */
  current(now: number): LocalAddress | null {
    const isFresh = this.#isLiteral || now - this.#lookedUpAt < LOCAL_LOOKUP_VALID_MS;
    return isFresh ? (this.#known[this.#turn % this.#known.length] ?? null) : null;
  }

  /** Looks up the host, with one query for all waiting visitors. A failure is cached too. Rejects if the lookup failed. */
  async lookup(now: number): Promise<LocalAddress> {
    const isAsked = this.#lookup !== null && now - this.#lookedUpAt < LOCAL_LOOKUP_VALID_MS;
    if (!isAsked || this.#lookup === null) {
      this.#lookedUpAt = now;
      this.#lookup = this.#find(this.#host);
    }
    this.#known = await this.#lookup;
    const found = this.current(this.#lookedUpAt);
    if (found === null) throw new Error('the name has no address');
    return found;
  }

  /**
   * Reports that the service does not listen at the address. Returns true if there is another address, which becomes the current address.
   */
  refused({ address }: LocalAddress): boolean {
    if (this.#known.length < 2) return false;
    if (this.#known[this.#turn % this.#known.length]?.address === address) this.#turn += 1;
    return true;
  }
}
