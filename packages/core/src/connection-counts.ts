// How many public connections each tunnel and each visitor address holds, and whether one more may come.

export interface ConnectionLimits {
  readonly perTunnel: number;
  readonly perAddress: number;
}

export type ConnectionVerdict =
  | { readonly kind: 'counted' }
  | { readonly kind: 'tunnel-full'; readonly limit: number }
  | { readonly kind: 'address-full'; readonly limit: number };

const COUNTED: ConnectionVerdict = { kind: 'counted' };

export class ConnectionCounts {
  readonly #limits: ConnectionLimits;
  readonly #ofTunnel = new Map<string, number>();
  readonly #ofAddress = new Map<string, number>();
  #total = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  get total(): number {
    return this.#total;
  }

  ofTunnel(tunnelId: string): number {
    return this.#ofTunnel.get(tunnelId) ?? 0;
  }

  ofAddress(address: string): number {
    return this.#ofAddress.get(address) ?? 0;
  }

  /**
   * Counted: the caller owes one closed() with the same values. `address` null: a proxy's connection, which is many visitors';
   * their addresses are counted by addressOpened(), request by request.
   */
  opened(tunnelId: string, address: string | null): ConnectionVerdict {
    const { perTunnel } = this.#limits;
    if (this.ofTunnel(tunnelId) >= perTunnel) return { kind: 'tunnel-full', limit: perTunnel };
    const verdict = address === null ? COUNTED : this.addressOpened(address);
    if (verdict.kind !== 'counted') return verdict;
    this.#ofTunnel.set(tunnelId, this.ofTunnel(tunnelId) + 1);
    this.#total += 1;
    return verdict;
  }

  closed(tunnelId: string, address: string | null): void {
    decrement(this.#ofTunnel, tunnelId);
    if (address !== null) this.addressClosed(address);
    this.#total -= 1;
  }

  /** Counted: the caller owes one addressClosed(). */
  addressOpened(address: string): ConnectionVerdict {
    const { perAddress } = this.#limits;
    if (this.ofAddress(address) >= perAddress) return { kind: 'address-full', limit: perAddress };
    this.#ofAddress.set(address, this.ofAddress(address) + 1);
    return COUNTED;
  }

  addressClosed(address: string): void {
    decrement(this.#ofAddress, address);
  }
}

/** An entry at zero leaves the map: addresses come and go for ever. */
const decrement = (counts: Map<string, number>, key: string): void => {
  const count = (counts.get(key) ?? 0) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
};
