// Whether a connection may come in, asked at every accept, and whose has to give way for it. Counts what is held, from accept to close, whether
// or not it ever says a word: in shares of the process, by network, and by account once that is known. Says; never does.

import { LinkedSet, type ListNode } from '../collections/linked-set.ts';
import { type ShareRefusal, Shares } from '../rate/fair-share.ts';
import { InFlight } from '../rate/in-flight.ts';
import { TokenBuckets } from '../rate/token-buckets.ts';
import { ownerKey } from '../tunnels/owner.ts';
import { AccountConnections, type ControlRole } from './account-connections.ts';
import type { ConnectionShare, ShareLimits } from './descriptors.ts';
import { type Holdable, NetworkHoldings } from './network-holdings.ts';

/**
 * control connections of one network that have not authenticated: an office whose 50 clients all come back brings 250
 * @limit tunnels: Client connections without authentication, per network | `CONTROL_WAITING_LIMIT`
 */
export const UNAUTHENTICATED_PER_NETWORK = 256;
/** the same of all networks together; above it the oldest of the network that holds most gives way */
const UNAUTHENTICATED_MAX = 4096;
/** ports of tunnels that one account may have open however few descriptors there are; else a quarter of those for ports */
const ACCOUNT_PORTS_MIN = 128;
/** connections that a network may hold before it is one that holds more than others: a client that comes back dials five at once */
export const NETWORK_ALLOWANCE = 8;
/** connections of the network that holds most that are looked at for the longest idle one: it happens at each accept of a flood */
const SHED_LOOKS_MAX = 256;
/** refused connections that are told why at a time; further ones are reset. Their descriptors are of those kept back */
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

/** What whoever serves a connection says of it when somebody asks; nothing of it is kept up to date in between. */
export interface HeldConnection {
  /** Nothing of it is under way: no request, no stream. */
  readonly isIdle: boolean;
  /** When it last did something. */
  readonly activeAtMs: number;
  describe(): ConnectionState;
  /** It has lost its place. */
  close(): void;
}

export interface ConnectionState {
  readonly phase: string;
  readonly waitsFor: string;
  readonly tunnelId?: string | null;
}

/** One connection's place, given back exactly once, by leave(). */
export class Ticket implements Holdable<Ticket> {
  kind: ConnectionKind;
  /** null: a trusted proxy's, which is many visitors'. */
  network: string | null;
  readonly enteredMs: number;
  /** It is told why it is refused, and ends. */
  readonly isRefused: boolean;
  account: string | null = null;
  /** null: it was accepted, and nobody has read of it yet. */
  held: HeldConnection | null = null;
  isIn = true;
  // Its places in the tables below; null: it is not there.
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

/** Oldest first; not to be changed while somebody looks at them. */
type Tickets = Iterable<Ticket> & { readonly size: number };

/** What holds no more, and how many it holds. */
export interface AdmissionRefusal {
  readonly reason: 'address-limit' | 'unauthenticated-limit' | `${ConnectionShare}-full`;
  readonly limit: number;
}

export type Entry =
  /** `shed`: it has lost its place to this one, and is to be closed. */
  | { readonly kind: 'admitted'; readonly ticket: Ticket; readonly shed: Ticket | null }
  /** `ticket`: for as long as it takes to say why; null: too many are being told, and it is reset. */
  | ({ readonly kind: 'refused'; readonly ticket: Ticket | null } & AdmissionRefusal);

export type PortEntry =
  | { readonly kind: 'admitted'; readonly shed: Ticket | null }
  | { readonly kind: 'refused'; readonly reason: ShareRefusal };

export interface AdmissionOptions {
  readonly limits: ShareLimits;
  /** [limits] connections_per_address. */
  readonly perNetwork: number;
  /** Descriptors that ports of tunnels may take before they take those of visitors; none unless told. */
  readonly spare?: number;
  /** [limits] handshakes_per_second; 0, and where it is absent: no bound. */
  readonly handshakesPerSecond?: number;
}

/**
 * TLS handshakes of a network are counted while the event loop is later than `lateMs`. The burst is in seconds of [limits] handshakes_per_second: a
 * browser opens six connections at once, an office some hundred.
 */
export const HANDSHAKES = { lateMs: 50, burstSecs: 4, networks: 16_384 };

/** How connections through trusted proxies are held together. They are many people's, so that only idle ones give way. */
const THROUGH_PROXIES = '';
/** No network of visitors. */
const NOBODY = 'nobody';

export class Admission {
  readonly limits: ShareLimits;
  readonly perNetwork: number;
  /** Since the start, by reason; those that gave way are `shed`. */
  readonly refusals = new Map<string, number>();
  readonly #used = { visitors: 0, control: 0, api: 0 };
  readonly #visitors = new NetworkHoldings<Ticket>();
  /** By listener: callers of one that is flooded are first to give way, and not a scrape of the metrics. */
  readonly #callers = {
    rest: new NetworkHoldings<Ticket>(),
    metrics: new NetworkHoldings<Ticket>(),
    platform: new NetworkHoldings<Ticket>(),
  };
  readonly #unauthenticated = new NetworkHoldings<Ticket>();
  #unauthenticatedCount = 0;
  /** Requests of visitors that came through a trusted proxy. */
  readonly #requests = new InFlight({});
  readonly #accounts: AccountConnections;
  /** Listeners of tunnels. */
  readonly #ports: Shares;
  readonly #spare: number;
  /** By network; null: no bound. */
  readonly #handshakes: TokenBuckets | null;
  /** In the order of their entry. */
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
    this.#ports = new Shares({
      limit: ports,
      perHolder: Math.max(ACCOUNT_PORTS_MIN, Math.floor(ports / 4)),
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  get used(): ShareLimits {
    return this.#used;
  }

  /** Oldest first. */
  get tickets(): Tickets {
    return this.#tickets;
  }

  /** Connections and requests that count for a network. */
  ofNetwork(network: string): number {
    return this.#visitors.count(network) + this.#requests.of(network);
  }

  ofAccount(account: string): number {
    return this.#accounts.of(account);
  }

  /** `network` null: a trusted proxy's connection, which counts by what the proxy says. */
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
    if (share !== 'control') this.#holdingsOf(ticket.kind).remove(ticket.network ?? THROUGH_PROXIES, ticket);
    else if (ticket.account === null) this.#removeUnauthenticated(ticket);
    else this.#accounts.give(ticket.account, ticket.kind === 'carrier' ? 'carrier' : 'session');
  }

  /**
   * Whether this connection may begin its TLS handshake now. false: it is counted, and the connection is to be reset. A handshake costs the server more
   * than its sender, so a flood from one network could keep all others waiting. As long as the process answers in time, nothing is counted.
   */
  handshakeBegins({ network }: Ticket, lateMs: number, nowMs: number): boolean {
    if (this.#handshakes === null || network === null || lateMs <= HANDSHAKES.lateMs) return true;
    if (this.#handshakes.take(network, nowMs) === 0) return true;
    this.#count('handshake-rate');
    return false;
  }

  // ---- control connections and carriers ----

  /** What a trusted proxy says of one that has not authenticated: it counts for that network from here on. */
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

  /** It has shown whose it is. null: it counts for that account now, and strangers cannot push it out any more. */
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

  /** Connections that one account may hold. */
  get perAccount(): number {
    return this.#accounts.perAccount;
  }

  // ---- ports of tunnels ----

  /** A listener is a descriptor, too, and one account could else open so many that nobody is accepted any more. One closePort() is owed. */
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

  /** Ports that one account may hold. */
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

  /** true: it counts for its visitor, and one requestOver() is owed. */
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

  /** An honest client authenticates within a round trip, so whoever has waited longest is given up, and not the newcomer. */
  #oldestUnauthenticated(): Ticket | null {
    for (const ticket of firstToGiveWay(this.#unauthenticated)) return ticket;
    return null;
  }

  /** What is idle in the network that holds most gives way to anybody. Where all of it is busy, only to one that will hold less even then. */
  #longestIdle(share: 'visitors' | 'api', network: string | null): Ticket | null {
    const holdings = share === 'visitors' ? this.#visitors : this.#mostCalled();
    const victim = longestIdleOf(firstToGiveWay(holdings));
    if (victim === null || isIdle(victim)) return victim;
    const { largest } = holdings;
    if (largest === null || holdings.count(network ?? THROUGH_PROXIES) + 1 >= largest.held.size) return null;
    // Not a download of an office, while strangers who hold less have idle ones.
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
    if (share !== 'control') return this.#holdingsOf(ticket.kind).add(network, ticket);
    this.#unauthenticated.add(network, ticket);
    this.#unauthenticatedCount += 1;
  }

  #holdingsOf(kind: ConnectionKind): NetworkHoldings<Ticket> {
    return kind === 'rest' || kind === 'metrics' || kind === 'platform' ? this.#callers[kind] : this.#visitors;
  }

  #mostCalled(): NetworkHoldings<Ticket> {
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
 * Those of the network that holds most. While nobody holds more than a few, all are alike, and the oldest go first: else a client that has just
 * dialled all its connections would be the largest of a hundred strangers, and gone before it could say who it is.
 */
const firstToGiveWay = ({ largest, all }: NetworkHoldings<Ticket>): Tickets =>
  largest !== null && largest.held.size > NETWORK_ALLOWANCE ? largest.held : all;

const isIdle = ({ held }: Ticket): boolean => held?.isIdle ?? true;
const activeAt = ({ held, enteredMs }: Ticket): number => held?.activeAtMs ?? enteredMs;

/** Idle ones first. Of very many only the oldest are looked at: this happens at each accept of a flood. */
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
