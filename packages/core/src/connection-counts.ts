// How many public connections each tunnel and each visitor address holds, and whether one more may come.

export interface ConnectionLimits {
  readonly perTunnel: number;
  readonly perAddress: number;
}

export type ConnectionVerdict =
  | { readonly kind: 'counted' }
  | { readonly kind: 'tunnel-full'; readonly limit: number }
  | { readonly kind: 'address-full'; readonly limit: number };

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

  /** Counted: the caller owes one closed() with the same values. */
  opened(tunnelId: string, address: string): ConnectionVerdict {
    const { perTunnel, perAddress } = this.#limits;
    if (this.ofTunnel(tunnelId) >= perTunnel) return { kind: 'tunnel-full', limit: perTunnel };
    if (this.ofAddress(address) >= perAddress) return { kind: 'address-full', limit: perAddress };
    this.#ofTunnel.set(tunnelId, this.ofTunnel(tunnelId) + 1);
    this.#ofAddress.set(address, this.ofAddress(address) + 1);
    this.#total += 1;
    return { kind: 'counted' };
  }

  closed(tunnelId: string, address: string): void {
    decrement(this.#ofTunnel, tunnelId);
    decrement(this.#ofAddress, address);
    this.#total -= 1;
  }
}

/** An entry at zero leaves the map: addresses come and go for ever. */
const decrement = (counts: Map<string, number>, key: string): void => {
  const count = (counts.get(key) ?? 0) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
};
