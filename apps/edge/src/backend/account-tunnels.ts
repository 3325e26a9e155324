// How many tunnels each account has on this edge, those that still look for their endpoint included.

interface Counted {
  readonly accountId: string;
  isOpen: boolean;
}

export class AccountTunnels {
  readonly #tunnels = new Map<string, Counted>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#tunnels.size;
  }

  countOf(accountId: string): number {
    return this.#counts.get(accountId) ?? 0;
  }

  add(tunnelId: string, accountId: string): void {
    if (this.#tunnels.has(tunnelId)) return;
    this.#tunnels.set(tunnelId, { accountId, isOpen: false });
    this.#counts.set(accountId, this.countOf(accountId) + 1);
  }

  opened(tunnelId: string, accountId: string): void {
    this.add(tunnelId, accountId);
    const counted = this.#tunnels.get(tunnelId);
    if (counted !== undefined) counted.isOpen = true;
  }

  /** The account of one that was counted and never opened; null: there is no such tunnel. */
  soughtBy(tunnelId: string): string | null {
    const counted = this.#tunnels.get(tunnelId);
    return counted === undefined || counted.isOpen ? null : counted.accountId;
  }

  remove(tunnelId: string): void {
    const counted = this.#tunnels.get(tunnelId);
    if (counted === undefined) return;
    this.#tunnels.delete(tunnelId);
    const left = this.countOf(counted.accountId) - 1;
    if (left > 0) this.#counts.set(counted.accountId, left);
    else this.#counts.delete(counted.accountId);
  }
}
