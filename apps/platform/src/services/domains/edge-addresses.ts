// The addresses of the edge, as `[server] domain` resolves: shown to owners of domains where no CNAME can stand. Known for a while; a resolver that
// fails takes away nothing that was known.
import type { DnsAnswer } from '@tunnel/certificates/domains';
import { type Clock, SingleFlight } from '@tunnel/runtime';

/** How long the addresses that `[server] domain` resolves to are known. */
export const EDGE_ADDRESSES_KNOWN_MS = 5 * 60_000;
/** Where there were none, or no answer, they are looked up again after so long. */
const EDGE_ADDRESSES_AGAIN_MS = 30_000;
/** What a request for domains waits for them. */
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

  /** Those that are known, at once; whoever comes first waits for them, but not for long. Empty: not known. */
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
