// The ports of one range and who owns each. A port has one owner: a living tunnel, or one that is awaited back.
// Mutates in place (a lease is O(1) at any range size), but time and chance are arguments.

export type WantedPort =
  | { readonly kind: 'exact'; readonly port: number }
  | { readonly kind: 'preferred'; readonly port: number }
  | { readonly kind: 'any' };

type LeaseAnswer =
  | { readonly kind: 'leased'; readonly port: number }
  | { readonly kind: 'in-use'; readonly port: number }
  | { readonly kind: 'out-of-range'; readonly port: number }
  | { readonly kind: 'exhausted' };

type PortUse =
  | { readonly kind: 'leased'; readonly owner: string }
  | { readonly kind: 'held'; readonly owner: string; readonly until: number }
  /** Another program of this machine has it. */
  | { readonly kind: 'outside'; readonly until: number };

export class PortLeases {
  readonly from: number;
  readonly to: number;
  readonly #uses = new Map<number, PortUse>();
  /** Dense, with swap-remove, and the index of each port in it: a uniform pick needs no search. */
  readonly #free: number[] = [];
  readonly #indexOf = new Map<number, number>();
  #earliestEnd = Number.POSITIVE_INFINITY;

  constructor(range: { readonly from: number; readonly to: number }) {
    this.from = range.from;
    this.to = range.to;
    for (let port = range.from; port <= range.to; port += 1) this.#putBack(port);
  }

  /** `random` in [0, 1). */
  lease(owner: string, wanted: WantedPort, random: number, now: number): LeaseAnswer {
    this.#endTimedUses(now);
    if (wanted.kind !== 'any') {
      if (this.#isObtainable(wanted.port, owner)) return this.#take(wanted.port, owner);
      if (wanted.kind === 'exact') {
        return { kind: this.#isInRange(wanted.port) ? 'in-use' : 'out-of-range', port: wanted.port };
      }
    }
    const port = this.#free[Math.floor(random * this.#free.length)];
    return port === undefined ? { kind: 'exhausted' } : this.#take(port, owner);
  }

  /** Keeps the port for its owner's return. false: it is not this owner's. A hold that ran out is still its owner's until another lease. */
  hold(port: number, owner: string, until: number): boolean {
    if (!this.#belongsTo(port, owner)) return false;
    this.#useUntil(port, { kind: 'held', owner, until });
    return true;
  }

  /** What one owner has is another's from now on, held or in use as it was. false: it is not this owner's. */
  reassign(port: number, owner: string, next: string): boolean {
    const use = this.#uses.get(port);
    if (use === undefined || use.kind === 'outside' || use.owner !== owner) return false;
    this.#uses.set(port, { ...use, owner: next });
    return true;
  }

  /** false: it is not this owner's, so the late end of an old tunnel changes nothing. */
  release(port: number, owner: string): boolean {
    if (!this.#belongsTo(port, owner)) return false;
    this.#uses.delete(port);
    this.#putBack(port);
    return true;
  }

  /** The owner could not open the port: another program has it. It is not offered until then. */
  markOutside(port: number, owner: string, until: number): boolean {
    if (!this.#belongsTo(port, owner)) return false;
    this.#useUntil(port, { kind: 'outside', until });
    return true;
  }

  useOf(port: number, now: number): PortUse | undefined {
    const use = this.#uses.get(port);
    return use !== undefined && use.kind !== 'leased' && now >= use.until ? undefined : use;
  }

  freeCount(now: number): number {
    this.#endTimedUses(now);
    return this.#free.length;
  }

  #isInRange(port: number): boolean {
    return Number.isInteger(port) && port >= this.from && port <= this.to;
  }

  #belongsTo(port: number, owner: string): boolean {
    const use = this.#uses.get(port);
    return use !== undefined && use.kind !== 'outside' && use.owner === owner;
  }

  /** A port that another program had is worth a try when it is asked for by number. */
  #isObtainable(port: number, owner: string): boolean {
    if (!this.#isInRange(port)) return false;
    const use = this.#uses.get(port);
    return use === undefined || use.kind === 'outside' || use.owner === owner;
  }

  #take(port: number, owner: string): LeaseAnswer {
    const index = this.#indexOf.get(port);
    if (index !== undefined) {
      const last = this.#free[this.#free.length - 1] as number;
      this.#free[index] = last;
      this.#indexOf.set(last, index);
      this.#free.pop();
      this.#indexOf.delete(port);
    }
    this.#uses.set(port, { kind: 'leased', owner });
    return { kind: 'leased', port };
  }

  #putBack(port: number): void {
    this.#indexOf.set(port, this.#free.length);
    this.#free.push(port);
  }

  #useUntil(port: number, use: Extract<PortUse, { until: number }>): void {
    this.#uses.set(port, use);
    this.#earliestEnd = Math.min(this.#earliestEnd, use.until);
  }

  #endTimedUses(now: number): void {
    if (now < this.#earliestEnd) return;
    this.#earliestEnd = Number.POSITIVE_INFINITY;
    for (const [port, use] of this.#uses) {
      if (use.kind === 'leased') continue;
      if (now < use.until) {
        this.#earliestEnd = Math.min(this.#earliestEnd, use.until);
        continue;
      }
      this.#uses.delete(port);
      this.#putBack(port);
    }
  }
}
