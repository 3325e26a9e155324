// Addresses of the edge, to which `[server] domain` resolves. Shown to owners of domains that cannot have a CNAME record. The addresses
// are cached; after a failed lookup, the known addresses are kept.
import type { DnsAnswer } from '@tunnel/certificates/domains';
import { type Clock, SingleFlight } from '@tunnel/runtime';

/** How long the resolved addresses of `[server] domain` are cached. */
export const EDGE_ADDRESSES_KNOWN_MS = 5 * 60_000;
/** Delay before the next lookup after a lookup without addresses or without an answer. */
const EDGE_ADDRESSES_AGAIN_MS = 30_000;
/** Maximum time that an API request waits for the first lookup of the addresses. */
export const EDGE_ADDRESSES_WAIT_MS = 1000;

export interface EdgeAddressesOptions {
  readonly clock: Clock;
  readonly lookUp: () => Promise<DnsAnswer>;
}

export class EdgeAddresses {
  readonly #options: EdgeAddressesOptions;
  #known: readonly string[] = [];
  #staleAt = Number.NEGATIVE_INFINITY;
  readonly #lookups = new SingleFlight(() => this.#lookUp());

  constructor(options: EdgeAddressesOptions) {
    this.#options = options;
  }

  /** Returns the known addresses. Without known addresses, waits up to EDGE_ADDRESSES_WAIT_MS for the lookup. Empty if unknown. */
  async get(): Promise<readonly string[]> {
    const { clock } = this.#options;
    if (clock.monotonic() < this.#staleAt) return this.#known;
    const looking = this.#lookups.run();
    if (this.#known.length === 0) await this.#within(looking, EDGE_ADDRESSES_WAIT_MS);
    return this.#known;
  }

  async #lookUp(): Promise<void> {
    const { clock, lookUp } = this.#options;
    const answer = await lookUp().catch((): DnsAnswer => ({ kind: 'no-answer', reason: 'it failed' }));
    if (answer.kind !== 'no-answer') this.#known = answer.kind === 'found' ? answer.values : [];
    const goodMs = answer.kind === 'found' ? EDGE_ADDRESSES_KNOWN_MS : EDGE_ADDRESSES_AGAIN_MS;
    this.#staleAt = clock.monotonic() + goodMs;
  }

  #within(work: Promise<void>, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.setTimeout(resolve, ms);
      void work.finally(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
