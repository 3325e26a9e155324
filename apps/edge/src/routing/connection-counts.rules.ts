// How many public connections each tunnel holds, and whether one more may come. What an address holds is the admission's.

export class ConnectionCounts {
  readonly perTunnel: number;
  readonly #ofTunnel = new Map<string, number>();
  #total = 0;

  constructor(limits: { readonly perTunnel: number }) {
    this.perTunnel = limits.perTunnel;
  }

  get total(): number {
    return this.#total;
  }

  ofTunnel(tunnelId: string): number {
    return this.#ofTunnel.get(tunnelId) ?? 0;
  }

  /** true: it is counted, and one closed() is owed. */
  opened(tunnelId: string): boolean {
    const count = this.ofTunnel(tunnelId);
    if (count >= this.perTunnel) return false;
    this.#ofTunnel.set(tunnelId, count + 1);
    this.#total += 1;
    return true;
  }

  closed(tunnelId: string): void {
    const count = this.ofTunnel(tunnelId) - 1;
    // An entry at zero leaves the map: tunnels come and go for ever.
    if (count > 0) this.#ofTunnel.set(tunnelId, count);
    else this.#ofTunnel.delete(tunnelId);
    this.#total -= 1;
  }
}
