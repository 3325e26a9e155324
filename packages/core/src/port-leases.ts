// The ports of one range and who owns each. A port has one owner: a living tunnel, or one that is awaited back.
// Whoever leaves the choice to us gets the one that is longest unused: a port that somebody had, and may have written down somewhere, comes back late.
// Mutates in place (a lease is O(1) at any range size), but time and chance are arguments.
import { LinkedSet, type ListNode } from './linked-set.ts';

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
  /** Longest unused first. */
  readonly #free = new LinkedSet<number>();
  readonly #freeNodes = new Map<number, ListNode<number>>();
  #earliestEnd = Number.POSITIVE_INFINITY;

  /**
   * `random` in [0, 1): nothing is known of who had which port in another run, so the first ones are given out by chance. In their own order they
   * would be the ports of the last run's clients.
   */
  constructor(range: { readonly from: number; readonly to: number }, random: () => number) {
    this.from = range.from;
    this.to = range.to;
    for (const port of shuffled(range, random)) this.#putBack(port);
  }

  /** `isOthers`: it is reserved, and not for who asks. */
  lease(
    owner: string,
    wanted: WantedPort,
    now: number,
    isOthers: (port: number) => boolean = () => false,
  ): LeaseAnswer {
    this.#endTimedUses(now);
    if (wanted.kind !== 'any') {
      if (this.#isObtainable(wanted.port, owner) && !isOthers(wanted.port)) return this.#take(wanted.port, owner);
      if (wanted.kind === 'exact') {
        return { kind: this.#isInRange(wanted.port) ? 'in-use' : 'out-of-range', port: wanted.port };
      }
    }
    for (const port of this.#free) if (!isOthers(port)) return this.#take(port, owner);
    return { kind: 'exhausted' };
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
    return this.#free.size;
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
    this.#free.delete(this.#freeNodes.get(port) ?? null);
    this.#freeNodes.delete(port);
    this.#uses.set(port, { kind: 'leased', owner });
    return { kind: 'leased', port };
  }

  #putBack(port: number): void {
    this.#freeNodes.set(port, this.#free.add(port));
  }

  #useUntil(port: number, use: Extract<PortUse, { until: number }>): void {
    this.#uses.set(port, use);
    this.#earliestEnd = Math.min(this.#earliestEnd, use.until);
  }

  #endTimedUses(now: number): void {
    if (now < this.#earliestEnd) return;
    this.#earliestEnd = Number.POSITIVE_INFINITY;
    const over: { readonly port: number; readonly until: number }[] = [];
    for (const [port, use] of this.#uses) {
      if (use.kind === 'leased') continue;
      if (now >= use.until) over.push({ port, until: use.until });
      else this.#earliestEnd = Math.min(this.#earliestEnd, use.until);
    }
    for (const { port } of over.toSorted((a, b) => a.until - b.until)) {
      this.#uses.delete(port);
      this.#putBack(port);
    }
  }
}

const shuffled = ({ from, to }: { readonly from: number; readonly to: number }, random: () => number): number[] => {
  const ports = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  for (let last = ports.length - 1; last > 0; last -= 1) {
    const other = last - Math.floor(random() * (last + 1));
    const port = ports[other] as number;
    ports[other] = ports[last] as number;
    ports[last] = port;
  }
  return ports;
};
