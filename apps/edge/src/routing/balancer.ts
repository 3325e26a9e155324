// Dispatches a public connection to a member of its route: chooses a random healthy member within the limits, and the next member on
// failure, as long as no data has reached a service. A tunnel without a group is a route with a single member.

import { Fault } from '@tunnel/errors';
import type { InFlight } from '@tunnel/rules/rate';
import { isGroup, type Route } from './registry.ts';
import type { Tunnel } from './tunnel.ts';
import type { TunnelGroup } from './tunnel-group.rules.ts';

/**
 * Maximum number of members that are tried for a visitor. In a large group without a working member, a flood of visitors must not cause
 * an even larger flood of dials.
 */
export const MEMBER_TRIES_MAX = 64;
/**
 * Time after the first failed member in which further members can be tried. A limit is needed because every attempt can take the full
 * dial timeout.
 */
export const MEMBER_TRIES_MS = 60_000;

/** Lease of a member for a public connection, which counts for the member. Only the balancer changes the member. */
export class Lease {
  /** Member of the lease. If null, the connection counts for no member. */
  member: Tunnel | null = null;
  /** True if the member's service has responded. Later failures do not change the member that served the connection. */
  isServed = false;
}

/** Members that failed for a connection or request. Further attempts are limited by the number of failed members and by time. */
export class FailedMembers {
  readonly members: Tunnel[] = [];
  /** Time at which the first member failed. */
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
  /** Returns a random number in [0, 1), uniformly distributed. */
  readonly random: () => number;
}

/** Required similarity of the next member to the failed member. */
export type NextMember = 'any' | 'same-local-protocol';

export class Balancer {
  readonly #counts: InFlight;
  readonly #random: () => number;

  constructor({ counts, random }: BalancerOptions) {
    this.#counts = counts;
    this.#random = random;
  }

  /**
   * Ensures that the lease has a member, and keeps its present member if possible. Returns null on success; otherwise the lease has no
   * member, and the refusal has the reason.
   */
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

  /**
   * Moves the lease to another member after a failure, and returns the member. Returns null and leaves the lease unchanged if no further
   * member can be tried.
   */
  retryOnNextMember(lease: Lease, failed: FailedMembers, nowMs: number, kind: NextMember): Tunnel | null {
    const last = failed.members.at(-1);
    const group = last?.group ?? null;
    if (last === undefined || group === null || nowMs - failed.sinceMs >= MEMBER_TRIES_MS) return null;
    const fits = (member: Tunnel): boolean => kind === 'any' || member.http?.localProtocol === last.http?.localProtocol;
    const { member } = lease;
    // With HTTP/2, another request of the same connection may have moved the lease meanwhile.
    const isElsewhere = member !== null && !failed.members.includes(member) && group.isHealthy(member) && fits(member);
    return isElsewhere ? member : this.#move(lease, group, failed.members, fits);
  }

  // ---- connections without a member ----

  /**
   * Counts a connection for the route although no member serves it. Returns false if the limit is reached; otherwise call
   * uncountUnserved() when the connection ends.
   */
  countUnserved(route: Route): boolean {
    return this.#counts.begin(routeId(route));
  }

  uncountUnserved(route: Route): void {
    this.#counts.end(routeId(route));
  }

  // ---- choosing a member ----

  /**
   * Chooses a member that was not tried yet. Returns null if there is no healthy member left, or if the maximum number of attempts is
   * reached.
   */
  #choose(route: Route, tried: readonly Tunnel[]): Tunnel | null {
    if (!isGroup(route)) return tried.length === 0 ? route : null;
    if (tried.length >= MEMBER_TRIES_MAX) return null;
    const first = route.pick(this.#random, tried);
    if (first === null || first.upstream.isConnected) return first;
    // The client has no carriers and dials new ones, which would delay the visitor. Prefer members with carriers.
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
      // Wait for a client with pending carriers only if the group has no other healthy member.
      return route.isHealthy(member) && (route.healthyCount === 1 || member.upstream.isConnected);
    }
    if (member.tunnelId !== route.tunnelId) return false;
    // After a new registration, the tunnel has the same id but a different object and session.
    lease.member = route;
    return true;
  }

  /** Counts the connection for a member. Returns null on success, otherwise the refusal. */
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
  // The previous member served the connection as well. Count a separate dispatch for the new member if the previous member is no longer
  // healthy.
  else if (!group.isHealthy(from)) group.dispatched(to);
};

const routeId = (route: Route): string => (isGroup(route) ? route.groupId : route.tunnelId);

const noneHealthy = (route: Route): Refusal => ({
  reason: 'no-healthy',
  fault: new Fault(isGroup(route) ? 'GROUP_UNHEALTHY' : 'TUNNEL_AWAY'),
});
