// Ports of a range and their owners: an open tunnel, or a tunnel that is expected back. A tunnel without a preferred port gets the longest
// unused port, so that ports noted down by earlier users are reused late. Mutates in place (a lease takes constant time for any range);
// time and randomness are arguments.

import { LinkedSet, type ListNode } from '../collections/linked-set.ts';
import { FairShare } from '../rate/fair-share.ts';

export type WantedPort =
  | { readonly kind: 'exact'; readonly port: number }
  | { readonly kind: 'preferred'; readonly port: number }
  | { readonly kind: 'any' };

type LeaseAnswer =
  | { readonly kind: 'leased'; readonly port: number }
  | { readonly kind: 'in-use'; readonly port: number }
  | { readonly kind: 'out-of-range'; readonly port: number }
  | { readonly kind: 'exhausted' }
  /** The account has reached its share of the range; the free ports are kept for others. */
  | { readonly kind: 'share'; readonly held: number };

/** Use of a port in the range. `account` is null for ports of the operator and of the edge. */
type PortUse =
  | { readonly kind: 'leased'; readonly owner: string; readonly account: string | null }
  | { readonly kind: 'held'; readonly owner: string; readonly account: string | null; readonly until: number }
  /** The port is used by another program on this machine. */
  | { readonly kind: 'outside'; readonly until: number };

/** Request for a port of the range: the requesting account, and which ports are reserved. */
export interface PortRequest {
  readonly account?: string | null;
  /** Returns true for a port reserved for another account. */
  readonly isOthers?: (port: number) => boolean;
  /** Returns true for a port reserved for this request's account. */
  readonly isReserved?: (port: number) => boolean;
  /** All reserved ports of the range. Counted at most once per second. */
  readonly reserved?: () => Iterable<ReservedPort>;
}

export interface ReservedPort {
  readonly port: number;
  readonly account: string;
}

/** Reserved ports without an open tunnel. They are not free, and count for their accounts. */
interface UnusedReservations {
  readonly countedAt: number;
  readonly all: number;
  readonly of: ReadonlyMap<string, number>;
}

const RESERVATIONS_COUNTED_EVERY_MS = 1000;

/** Minimum ports per account, even if its share of the range is smaller. */
const ACCOUNT_PORTS_MIN = 4;

interface PortRangeOptions {
  readonly from: number;
  readonly to: number;
  /** Share of the range, 0 to 1, that an account may hold while few ports are free. */
  readonly accountShare?: number;
}

export class PortLeases {
  readonly from: number;
  readonly to: number;
  readonly #uses = new Map<number, PortUse>();
  /** Free ports of the range, longest unused first. */
  readonly #free = new LinkedSet<number>();
  readonly #freeNodes = new Map<number, ListNode<number>>();
  /** Number of leased and held ports per account. */
  readonly #shares: FairShare;
  #unused: UnusedReservations = { countedAt: Number.NEGATIVE_INFINITY, all: 0, of: new Map() };
  #earliestEnd = Number.POSITIVE_INFINITY;

  /**
   * `random` is in [0, 1). The initial order is random, because the users of the previous run are unknown; in numeric order, new tunnels
   * would get the ports of the previous run's clients.
   */
  constructor(range: PortRangeOptions, random: () => number) {
    this.from = range.from;
    this.to = range.to;
    const limit = range.to - range.from + 1;
    this.#shares = new FairShare({ limit, perHolder: portsPerAccount(limit, range.accountShare) });
    for (const port of shuffled(range, random)) this.#putBack(port);
  }

  lease(owner: string, wanted: WantedPort, now: number, request: PortRequest = {}): LeaseAnswer {
    const { isOthers = () => false } = request;
    this.#endTimedUses(now);
    if (wanted.kind !== 'any') {
      if (this.#isObtainable(wanted.port, owner) && !isOthers(wanted.port))
        return this.#take(wanted.port, owner, now, request);
      if (wanted.kind === 'exact') {
        return { kind: this.#isInRange(wanted.port) ? 'in-use' : 'out-of-range', port: wanted.port };
      }
    }
    for (const port of this.#free) if (!isOthers(port)) return this.#take(port, owner, now, request);
    return { kind: 'exhausted' };
  }

  /**
   * Keeps the port for its owner's return. Returns false for another owner's port. An expired hold stays with its owner until the next
   * lease.
   */
  hold(port: number, owner: string, until: number): boolean {
    const use = this.#uses.get(port);
    if (use === undefined || use.kind === 'outside' || use.owner !== owner) return false;
    this.#useUntil(port, { kind: 'held', owner, account: use.account, until });
    return true;
  }

  /** Transfers a held or leased port to another owner. Returns false if `owner` does not have it. */
  reassign(port: number, owner: string, next: string): boolean {
    const use = this.#uses.get(port);
    if (use === undefined || use.kind === 'outside' || use.owner !== owner) return false;
    this.#uses.set(port, { ...use, owner: next });
    return true;
  }

  /** Returns false for another owner's port, so that the late end of an old tunnel changes nothing. */
  release(port: number, owner: string): boolean {
    if (!this.#belongsTo(port, owner)) return false;
    this.#end(port);
    this.#putBack(port);
    return true;
  }

  /** Marks a port that could not be opened because another program uses it. The port is not offered until `until`. */
  markOutside(port: number, owner: string, until: number): boolean {
    if (!this.#belongsTo(port, owner)) return false;
    this.#end(port);
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

  /** A port used by another program is tried again if requested by number. */
  #isObtainable(port: number, owner: string): boolean {
    if (!this.#isInRange(port)) return false;
    const use = this.#uses.get(port);
    return use === undefined || use.kind === 'outside' || use.owner === owner;
  }

  #take(port: number, owner: string, now: number, { account = null, ...request }: PortRequest): LeaseAnswer {
    const isItsOwn = this.#belongsTo(port, owner) || request.isReserved?.(port) === true;
    if (!isItsOwn && account !== null) {
      const { all, of } = this.#unusedReservations(now, request.reserved);
      const besides = of.get(account) ?? 0;
      // The requested port is free, so at least one port is, even if the count is outdated.
      const free = Math.max(1, this.#free.size - all);
      if (this.#shares.refusalToKeep(account, free, besides) !== null)
        return { kind: 'share', held: this.#shares.of(account) + besides };
    }
    this.#end(port);
    this.#free.delete(this.#freeNodes.get(port) ?? null);
    this.#freeNodes.delete(port);
    this.#uses.set(port, { kind: 'leased', owner, account });
    if (account !== null) this.#shares.take(account);
    return { kind: 'leased', port };
  }

  #unusedReservations(now: number, reserved: PortRequest['reserved']): UnusedReservations {
    if (reserved === undefined || now - this.#unused.countedAt < RESERVATIONS_COUNTED_EVERY_MS) return this.#unused;
    const of = new Map<string, number>();
    let all = 0;
    for (const { port, account } of reserved()) {
      if (!this.#isInRange(port) || this.#uses.has(port)) continue;
      all += 1;
      of.set(account, (of.get(account) ?? 0) + 1);
    }
    this.#unused = { countedAt: now, all, of };
    return this.#unused;
  }

  /** Ends the lease or hold of a port and reduces the account's number of ports. */
  #end(port: number): void {
    const use = this.#uses.get(port);
    if (use !== undefined && use.kind !== 'outside' && use.account !== null) this.#shares.give(use.account);
    this.#uses.delete(port);
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
      this.#end(port);
      this.#putBack(port);
    }
  }
}

/** Ports that an account may always hold in a range of this size. */
export const portsPerAccount = (size: number, accountShare = 1): number =>
  Math.max(ACCOUNT_PORTS_MIN, Math.floor(size * accountShare));

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
