// Gives a public connection to one member of its route: uniform over the healthy, within the limits, and on to the next member while
// nothing has reached a service. A tunnel that stands alone is a route of one.

import { Fault } from '@tunnel/errors';
import type { InFlight } from '@tunnel/rules/rate';
import { isGroup, type Route } from './registry.ts';
import type { Tunnel } from './tunnel.ts';
import type { TunnelGroup } from './tunnel-group.rules.ts';

/** members of a group that one visitor may be tried with; in a large pool that is down, a flood of visitors must not become a larger one of dials */
export const MEMBER_TRIES_MAX = 64;
/** from the first member that did not take a visitor: later no further one is begun, as each may take the time of a dial */
export const MEMBER_TRIES_MS = 60_000;

/** One public connection's hold on a member, which it is counted for. The balancer alone changes the member. */
export class Lease {
  /** null: it counts for nobody. */
  member: Tunnel | null = null;
  /** The member's service has answered: what comes later does not change that it was this one. */
  isServed = false;
}

/** Those that a connection or a request was tried with in vain: the next ones are bounded by their number and by time. */
export class FailedMembers {
  readonly members: Tunnel[] = [];
  /** When the first of them failed. */
  readonly sinceMs: number;

  constructor(nowMs: number) {
    this.sinceMs = nowMs;
  }
}

export interface Refusal {
  readonly reason: 'tunnel-limit' | 'no-healthy';
  readonly fault: Fault;
}

export interface BalancerOptions {
  readonly counts: InFlight;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** What the next member must have in common with the one that failed. */
export type NextMember = 'any' | 'same-local-protocol';

export class Balancer {
  readonly #counts: InFlight;
  readonly #random: () => number;

  constructor({ counts, random }: BalancerOptions) {
    this.#counts = counts;
    this.#random = random;
  }

  /** A lease that has a member stays with it where it may. null: it has one now; else it has none, and this is why. */
  acquire(lease: Lease, route: Route): Refusal | null {
    if (this.#stays(lease, route)) return null;
    this.release(lease);
    let full = NONE;
    let refusal: Refusal | null = null;
    for (;;) {
      const member = this.#choose(route, full);
      if (member === null) return refusal ?? noneHealthy(route);
      refusal = this.#enter(lease, member);
      if (refusal === null) {
        member.group?.dispatched(member);
        return null;
      }
      full = [...full, member];
    }
  }

  release(lease: Lease): void {
    const { member } = lease;
    if (member === null) return;
    lease.member = null;
    member.counters.openConnections -= 1;
    this.#counts.end(member.tunnelId);
  }

  /** The member that has it instead of the last one that failed; null: there is none, and the lease is as it was. */
  retryOnNextMember(lease: Lease, failed: FailedMembers, nowMs: number, kind: NextMember): Tunnel | null {
    const last = failed.members.at(-1);
    const group = last?.group ?? null;
    if (last === undefined || group === null || nowMs - failed.sinceMs >= MEMBER_TRIES_MS) return null;
    const fits = (member: Tunnel): boolean => kind === 'any' || member.http?.localProtocol === last.http?.localProtocol;
    const { member } = lease;
    // With HTTP/2 another request may have taken the lease elsewhere meanwhile.
    const isElsewhere = member !== null && !failed.members.includes(member) && group.isHealthy(member) && fits(member);
    return isElsewhere ? member : this.#move(lease, group, failed.members, fits);
  }

  // ---- connections that no member has ----

  /** For the time that a connection takes although nobody serves it. false: it is one too many. */
  countUnserved(route: Route): boolean {
    return this.#counts.begin(routeId(route));
  }

  uncountUnserved(route: Route): void {
    this.#counts.end(routeId(route));
  }

  // ---- choosing ----

  /** null: none is healthy, or each that is was tried, or enough were. */
  #choose(route: Route, tried: readonly Tunnel[]): Tunnel | null {
    if (!isGroup(route)) return tried.length === 0 ? route : null;
    if (tried.length >= MEMBER_TRIES_MAX) return null;
    const first = route.pick(this.#random, tried);
    if (first === null || first.upstream.isConnected) return first;
    // Its client dials new carriers, which the visitor would have to wait for: those that have some come first.
    const waiting = [...tried, first];
    for (;;) {
      const other = waiting.length < MEMBER_TRIES_MAX ? route.pick(this.#random, waiting) : null;
      if (other === null) return first;
      if (other.upstream.isConnected) return other;
      waiting.push(other);
    }
  }

  #stays(lease: Lease, route: Route): boolean {
    const { member } = lease;
    if (member === null) return false;
    if (isGroup(route)) {
      // A client that dials new carriers is waited for only when nobody else is there.
      return route.isHealthy(member) && (route.healthyCount === 1 || member.upstream.isConnected);
    }
    if (member.tunnelId !== route.tunnelId) return false;
    // Registered again it has the same id and another session.
    lease.member = route;
    return true;
  }

  /** null: it counts for the member now. */
  #enter(lease: Lease, member: Tunnel): Refusal | null {
    if (!this.#counts.begin(member.tunnelId)) {
      const fault = new Fault('CONNECTIONS_PER_TUNNEL', { limit: this.#counts.perKey });
      return { reason: 'tunnel-limit', fault };
    }
    lease.member = member;
    lease.isServed = false;
    member.counters.openConnections += 1;
    return null;
  }

  #move(
    lease: Lease,
    group: TunnelGroup<Tunnel>,
    failed: readonly Tunnel[],
    fits: (member: Tunnel) => boolean,
  ): Tunnel | null {
    const { member: from, isServed } = lease;
    const tried = [...failed];
    for (let next = this.#choose(group, tried); next !== null; next = this.#choose(group, tried)) {
      tried.push(next);
      if (!fits(next)) continue;
      this.release(lease);
      if (this.#enter(lease, next) === null) {
        countMove(group, from, next, isServed);
        return next;
      }
    }
    if (from !== null && lease.member === null) this.#enter(lease, from);
    return null;
  }
}

const NONE: readonly Tunnel[] = [];

const countMove = (group: TunnelGroup<Tunnel>, from: Tunnel | null, to: Tunnel, wasServed: boolean): void => {
  if (from === null) group.dispatched(to);
  else if (!wasServed) {
    if (from.group === group) group.moved(from, to);
  }
  // The one before has served the connection, too: this is a dispatch of its own where that one has come to its end.
  else if (!group.isHealthy(from)) group.dispatched(to);
};

const routeId = (route: Route): string => (isGroup(route) ? route.groupId : route.tunnelId);

const noneHealthy = (route: Route): Refusal => ({
  reason: 'no-healthy',
  fault: new Fault(isGroup(route) ? 'GROUP_UNHEALTHY' : 'TUNNEL_AWAY'),
});
