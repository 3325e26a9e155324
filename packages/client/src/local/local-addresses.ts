// Where the local service of a tunnel is, as addresses: a name is looked up once for many visitors, and when the service does not
// listen on the first of its addresses, the next one has its turn (`localhost` is ::1 on one machine and 127.0.0.1 on another).
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** how long the address of a local host is good, and how long a failure to find it counts */
export const LOCAL_LOOKUP_VALID_MS = 5000;

export interface LocalAddress {
  readonly address: string;
  readonly family: number;
}

/** Rejects when there is none. */
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

  /** null: it has to be looked up first. */
  current(now: number): LocalAddress | null {
    const isFresh = this.#isLiteral || now - this.#lookedUpAt < LOCAL_LOOKUP_VALID_MS;
    return isFresh ? (this.#known[this.#turn % this.#known.length] ?? null) : null;
  }

  /** One question at a time, however many visitors wait for the answer; a failure is an answer too. Rejects with it. */
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

  /** The service does not listen there. true: it may at another one, which is current from now on. */
  refused({ address }: LocalAddress): boolean {
    if (this.#known.length < 2) return false;
    if (this.#known[this.#turn % this.#known.length]?.address === address) this.#turn += 1;
    return true;
  }
}
