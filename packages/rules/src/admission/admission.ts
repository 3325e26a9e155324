// Decides at every accept whether a connection is admitted and which other connection is closed for it. Counts connections from accept to
// close, even silent ones: per share of the process, per network, and per account once known. Only decides; the caller acts.

import { LinkedSet, type ListNode } from '../collections/linked-set.ts';
import { FairShare, type ShareRefusal } from '../rate/fair-share.ts';
import { InFlight } from '../rate/in-flight.ts';
import { TokenBuckets } from '../rate/token-buckets.ts';
import { ownerKey } from '../tunnels/owner.ts';
import { AccountConnections, type ControlRole } from './account-connections.ts';
import { ConnectionsByNetwork, type NetworkListed } from './connections-by-network.ts';
import type { ConnectionShare, ShareLimits } from './descriptors.ts';

/**
 * Maximum unauthenticated control connections per network. An office where 50 clients reconnect at once opens 250.
 * @limit tunnels: Client connections without authentication, per network | `CONTROL_WAITING_LIMIT`
 */
export const UNAUTHENTICATED_PER_NETWORK = 256;
/** Maximum unauthenticated control connections in total. Beyond it the oldest connection of the network with the most is closed. */
const UNAUTHENTICATED_MAX = 4096;
/** Minimum open tunnel ports per account. The regular limit is a quarter of the descriptors for ports. */
const ACCOUNT_PORTS_MIN = 128;
/** Connections that a network may hold before it counts as large. A reconnecting client dials five at once. */
export const NETWORK_ALLOWANCE = 8;
/** Maximum connections of the largest network examined for the longest idle, because the search runs at every accept of a flood. */
const SHED_LOOKS_MAX = 256;
/** Maximum rejected connections that get an explanation at a time; further connections are reset. They use reserved descriptors. */
export const REFUSALS_BEING_TOLD = 64;

const SHARE_OF = {
  http: 'visitors',
  https: 'visitors',
  tcp: 'visitors',
  control: 'control',
  carrier: 'control',
  rest: 'api',
  metrics: 'api',
  platform: 'api',
} as const satisfies Record<string, ConnectionShare>;

export type ConnectionKind = keyof typeof SHARE_OF;

export const shareOf = (kind: ConnectionKind): ConnectionShare => SHARE_OF[kind];

/** State of an admitted connection, queried from its handler on demand. */
export interface HeldConnection {
  /** True if no request or stream is in progress on the connection. */
  readonly isIdle: boolean;
  /** Time of the last activity on the connection. */
  readonly activeAtMs: number;
  describe(): ConnectionState;
  /** Called when another connection has taken the slot of this connection, which must close. */
  close(): void;
}

export interface ConnectionState {
  readonly phase: string;
  readonly waitsFor: string;
  readonly tunnelId?: string | null;
}

/** Slot of a connection, returned exactly once by leave(). */
export class Ticket implements NetworkListed<Ticket> {
  kind: ConnectionKind;
  /** Network of the visitor. Null for a connection of a trusted proxy, which carries many visitors. */
  network: string | null;
  readonly enteredMs: number;
  /** True for a rejected connection that is only open to send an explanation and then closes. */
  readonly isRefused: boolean;
  account: string | null = null;
  /** Handler of the connection. Null after accept until a handler owns the connection. */
  held: HeldConnection | null = null;
  isIn = true;
  // Positions of the ticket in the lists of Admission. Null if not listed.
  entered: ListNode<Ticket> | null = null;
  amongAll: ListNode<Ticket> | null = null;
  amongNetwork: ListNode<Ticket> | null = null;

  constructor(kind: ConnectionKind, network: string | null, enteredMs: number, isRefused: boolean) {
    this.kind = kind;
    this.network = network;
    this.enteredMs = enteredMs;
    this.isRefused = isRefused;
  }
}

/** Tickets of admitted connections, oldest first. Must not change during iteration. */
type Tickets = Iterable<Ticket> & { readonly size: number };

/** The connection limit that is exhausted, and its value. */
export interface AdmissionRefusal {
  readonly reason: 'address-limit' | 'unauthenticated-limit' | `${ConnectionShare}-full`;
  readonly limit: number;
}

export type Entry =
  /** The connection was admitted. `shed` is the connection that lost its slot to the new one and must be closed. */
  | { readonly kind: 'admitted'; readonly ticket: Ticket; readonly shed: Ticket | null }
  /**
   * `ticket` covers the time needed to send the explanation. Null if too many explanations are in progress; then the connection is reset.
   */
  | ({ readonly kind: 'refused'; readonly ticket: Ticket | null } & AdmissionRefusal);

export type PortEntry =
  | { readonly kind: 'admitted'; readonly shed: Ticket | null }
  | { readonly kind: 'refused'; readonly reason: ShareRefusal };

export interface AdmissionOptions {
  readonly limits: ShareLimits;
  /** Maximum connections per network of visitors: [limits] connections_per_address. */
  readonly perNetwork: number;
  /** File descriptors that tunnel ports use before those of visitors. Default 0. */
  readonly spare?: number;
  /** Maximum TLS handshakes per second and network: [limits] handshakes_per_second. 0 or undefined: no limit. */
  readonly handshakesPerSecond?: number;
}

/**
 * TLS handshakes of a network are counted only while the event loop lags by more than `lateMs`. The burst is in seconds of [limits]
 * handshakes_per_second: a browser opens six connections at once, an office some hundred.
 */
export const HANDSHAKES = { lateMs: 50, burstSecs: 4, networks: 16_384 };

/** Key for connections through trusted proxies. They carry many visitors, so only idle connections are closed. */
const THROUGH_PROXIES = '';
/** Placeholder network for a new tunnel port. No visitor belongs to it. */
const NOBODY = 'nobody';

export class Admission {
  readonly limits: ShareLimits;
  readonly perNetwork: number;
  /** Rejected connections since start by reason. Connections closed to admit others count as `shed`. */
  readonly refusals = new Map<string, number>();
  readonly #used = { visitors: 0, control: 0, api: 0 };
  readonly #visitors = new ConnectionsByNetwork<Ticket>();
  /** API connections by network, separately per listener, so that a flood of one API does not push out a metrics scrape. */
  readonly #callers = {
    rest: new ConnectionsByNetwork<Ticket>(),
    metrics: new ConnectionsByNetwork<Ticket>(),
    platform: new ConnectionsByNetwork<Ticket>(),
  };
  readonly #unauthenticated = new ConnectionsByNetwork<Ticket>();
  #unauthenticatedCount = 0;
  /** Requests in progress of visitors through trusted proxies, counted per network. */
  readonly #requests = new InFlight({});
  readonly #accounts: AccountConnections;
  /** Open listeners of tunnel ports by account. */
  readonly #ports: FairShare;
  readonly #spare: number;
  /** TLS handshake limit per network. Null without a limit. */
  readonly #handshakes: TokenBuckets | null;
  /** Tickets of all connections in order of admission. */
  readonly #tickets = new LinkedSet<Ticket>();
  #beingTold = 0;

  constructor({ limits, perNetwork, spare = 0, handshakesPerSecond = 0 }: AdmissionOptions) {
    this.limits = limits;
    this.perNetwork = perNetwork;
    this.#accounts = new AccountConnections(limits.control);
    this.#spare = spare;
    const burst = HANDSHAKES.burstSecs * handshakesPerSecond;
    const handshakes = { perSecond: handshakesPerSecond, burst, keys: HANDSHAKES.networks };
    this.#handshakes = handshakesPerSecond === 0 ? null : new TokenBuckets(handshakes);
    const ports = spare + Math.max(1, Math.floor(limits.visitors / 2));
    this.#ports = new FairShare({
      limit: ports,
      perHolder: Math.max(ACCOUNT_PORTS_MIN, Math.floor(ports / 4)),
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  get used(): ShareLimits {
    return this.#used;
  }

  /** Tickets of all connections, oldest first. */
  get tickets(): Tickets {
    return this.#tickets;
  }

  /** Number of connections and of requests through trusted proxies counted for a network. */
  ofNetwork(network: string): number {
    return this.#visitors.count(network) + this.#requests.of(network);
  }

  ofAccount(account: string): number {
    return this.#accounts.of(account);
  }

  /** `network` is null for a trusted proxy, where requests are counted by the forwarded address. */
  enter(kind: ConnectionKind, network: string | null, nowMs: number): Entry {
    const share = SHARE_OF[kind];
    const refusal = network === null ? null : this.#networkRefusal(share, network);
    if (refusal !== null) return this.#refuse(kind, network, nowMs, refusal);
    let shed: Ticket | null = null;
    if (this.#isFull(share)) {
      shed = share === 'control' ? this.#oldestUnauthenticated() : this.#longestIdle(share, network);
      if (shed === null) {
        return this.#refuse(kind, network, nowMs, { reason: `${share}-full`, limit: this.limits[share] });
      }
      this.leave(shed);
      this.#count('shed');
    }
    const ticket = new Ticket(kind, network, nowMs, false);
    this.#used[share] += 1;
    ticket.entered = this.#tickets.add(ticket);
    this.#hold(share, ticket);
    return { kind: 'admitted', ticket, shed };
  }

  leave(ticket: Ticket): void {
    if (!ticket.isIn) return;
    ticket.isIn = false;
    if (ticket.isRefused) {
      this.#beingTold -= 1;
      return;
    }
    const share = SHARE_OF[ticket.kind];
    this.#used[share] -= 1;
    this.#tickets.delete(ticket.entered);
    if (share !== 'control') this.#connectionsOf(ticket.kind).remove(ticket.network ?? THROUGH_PROXIES, ticket);
    else if (ticket.account === null) this.#removeUnauthenticated(ticket);
    else this.#accounts.give(ticket.account, ticket.kind === 'carrier' ? 'carrier' : 'session');
  }

  /**
   * Returns whether the connection may begin its TLS handshake. If false, the connection must be reset. A handshake costs the server more
   * than the sender, so a flood from a single network could delay all others. While the event loop is on time, handshakes are not counted.
   */
  handshakeBegins({ network }: Ticket, lateMs: number, nowMs: number): boolean {
    if (this.#handshakes === null || network === null || lateMs <= HANDSHAKES.lateMs) return true;
    if (this.#handshakes.take(network, nowMs) === 0) return true;
    this.#count('handshake-rate');
    return false;
  }

  // ---- control connections and carriers ----

  /** Assigns an unauthenticated connection behind a trusted proxy to the network that the proxy reports. */
  speaksFor(ticket: Ticket, network: string): AdmissionRefusal | null {
    if (!ticket.isIn || ticket.network !== null || ticket.account !== null) return null;
    const refusal = this.#networkRefusal('control', network);
    if (refusal !== null) {
      this.#count(refusal.reason);
      return refusal;
    }
    this.#removeUnauthenticated(ticket);
    ticket.network = network;
    this.#hold('control', ticket);
    return null;
  }

  /**
   * Assigns an authenticated connection to its account, so that strangers can no longer push it out. Returns the reason if the account's
   * limit is reached.
   */
  identify(ticket: Ticket, account: string, as: ControlRole): ShareRefusal | null {
    if (!ticket.isIn || ticket.account !== null) return null;
    const refusal = this.#accounts.refusal(account, as);
    if (refusal !== null) {
      this.#count('account-limit');
      return refusal;
    }
    this.#removeUnauthenticated(ticket);
    if (as === 'carrier') ticket.kind = 'carrier';
    ticket.account = account;
    this.#accounts.take(account, as);
    return null;
  }

  /** Maximum control connections per account. */
  get perAccount(): number {
    return this.#accounts.perAccount;
  }

  // ---- ports of tunnels ----

  /**
   * Counts a listener, which needs a descriptor: one account could otherwise open so many that no visitor is accepted. Must be followed by
   * one closePort().
   */
  openPort(account: string): PortEntry {
    const refusal = this.#ports.refusal(account);
    if (refusal !== null) return this.#refusePort(refusal);
    this.#ports.take(account);
    if (this.#used.visitors <= this.#visitorsLimit) return { kind: 'admitted', shed: null };
    const shed = this.#longestIdle('visitors', NOBODY);
    if (shed === null) {
      this.#ports.give(account);
      return this.#refusePort('all-taken');
    }
    this.leave(shed);
    this.#count('shed');
    return { kind: 'admitted', shed };
  }

  closePort(account: string): void {
    this.#ports.give(account);
  }

  /** Maximum tunnel ports per account. */
  get portsPerAccount(): number {
    return this.#ports.perHolder;
  }

  #refusePort(reason: ShareRefusal): PortEntry {
    this.#count('port-limit');
    return { kind: 'refused', reason };
  }

  get #visitorsLimit(): number {
    return this.limits.visitors - Math.max(0, this.#ports.taken - this.#spare);
  }

  // ---- requests through trusted proxies ----

  /** Returns true if the request is counted for its visitor. Then one requestOver() must follow. */
  requestBegins(network: string): boolean {
    if (this.ofNetwork(network) >= this.perNetwork) {
      this.#count('address-limit');
      return false;
    }
    this.#requests.begin(network);
    return true;
  }

  requestOver(network: string): void {
    this.#requests.end(network);
  }

  // ---- the rules ----

  #networkRefusal(share: ConnectionShare, network: string): AdmissionRefusal | null {
    if (share === 'visitors' && this.ofNetwork(network) >= this.perNetwork) {
      return { reason: 'address-limit', limit: this.perNetwork };
    }
    const limit = UNAUTHENTICATED_PER_NETWORK;
    if (share === 'control' && this.#unauthenticated.count(network) >= limit) {
      return { reason: 'unauthenticated-limit', limit };
    }
    return null;
  }

  #isFull(share: ConnectionShare): boolean {
    if (this.#used[share] >= (share === 'visitors' ? this.#visitorsLimit : this.limits[share])) return true;
    return share === 'control' && this.#unauthenticatedCount >= UNAUTHENTICATED_MAX;
  }

  /** Honest clients authenticate within a round trip, so the longest waiting connection is closed, not the newest. */
  #oldestUnauthenticated(): Ticket | null {
    for (const ticket of firstToGiveWay(this.#unauthenticated)) return ticket;
    return null;
  }

  /**
   * An idle connection of the largest network is closed for any newcomer. If the whole network is busy, a busy connection is closed only
   * for a network that will still hold fewer.
   */
  #longestIdle(share: 'visitors' | 'api', network: string | null): Ticket | null {
    const holdings = share === 'visitors' ? this.#visitors : this.#mostCalled();
    const victim = longestIdleOf(firstToGiveWay(holdings));
    if (victim === null || isIdle(victim)) return victim;
    const { largest } = holdings;
    if (largest === null || holdings.count(network ?? THROUGH_PROXIES) + 1 >= largest.held.size) return null;
    // An idle connection of another network is closed before a busy download of a large network.
    const ofAnybody = longestIdleOf(holdings.all);
    if (ofAnybody !== null && isIdle(ofAnybody)) return ofAnybody;
    return largest.network === THROUGH_PROXIES ? null : longestIdleOf(largest.held);
  }

  #refuse(kind: ConnectionKind, network: string | null, nowMs: number, refusal: AdmissionRefusal): Entry {
    this.#count(refusal.reason);
    const isTold = kind !== 'tcp' && this.#beingTold < REFUSALS_BEING_TOLD;
    if (isTold) this.#beingTold += 1;
    return { kind: 'refused', ...refusal, ticket: isTold ? new Ticket(kind, network, nowMs, true) : null };
  }

  #hold(share: ConnectionShare, ticket: Ticket): void {
    const network = ticket.network ?? THROUGH_PROXIES;
    if (share !== 'control') return this.#connectionsOf(ticket.kind).add(network, ticket);
    this.#unauthenticated.add(network, ticket);
    this.#unauthenticatedCount += 1;
  }

  #connectionsOf(kind: ConnectionKind): ConnectionsByNetwork<Ticket> {
    return kind === 'rest' || kind === 'metrics' || kind === 'platform' ? this.#callers[kind] : this.#visitors;
  }

  #mostCalled(): ConnectionsByNetwork<Ticket> {
    return Object.values(this.#callers).reduce((most, one) => (one.all.size > most.all.size ? one : most));
  }

  #removeUnauthenticated(ticket: Ticket): void {
    this.#unauthenticated.remove(ticket.network ?? THROUGH_PROXIES, ticket);
    this.#unauthenticatedCount -= 1;
  }

  #count(reason: string): void {
    this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1);
  }
}

/**
 * Connections of the largest network. While no network holds more than the allowance, the oldest connections of all networks go first.
 * Otherwise a client that has just dialed its connections would be the largest of a hundred strangers and be closed before it could
 * authenticate.
 */
const firstToGiveWay = ({ largest, all }: ConnectionsByNetwork<Ticket>): Tickets =>
  largest !== null && largest.held.size > NETWORK_ALLOWANCE ? largest.held : all;

const isIdle = ({ held }: Ticket): boolean => held?.isIdle ?? true;
const activeAt = ({ held, enteredMs }: Ticket): number => held?.activeAtMs ?? enteredMs;

/** Returns the longest idle connection. Examines only the oldest, because the search runs at every accept of a flood. */
const longestIdleOf = (tickets: Tickets): Ticket | null => {
  let found: Ticket | null = null;
  let looks = 0;
  for (const ticket of tickets) {
    if (found === null || givesWaySooner(ticket, found)) found = ticket;
    looks += 1;
    if (looks >= SHED_LOOKS_MAX) break;
  }
  return found;
};

const givesWaySooner = (one: Ticket, other: Ticket): boolean =>
  isIdle(one) === isIdle(other) ? activeAt(one) < activeAt(other) : isIdle(one);
