// Who publishes which p2p name, who may join it, and who has. It says; the edge joins. Mutates in place; time, ids and the comparison of hashes are
// given to it: one that takes the same time for every two is the edge's to bring.

import { Fault } from '@tunnel/errors';
import { foldSubdomain, shownText } from '@tunnel/rules/names';
import { SlidingWindows } from '@tunnel/rules/rate';
import { type Owner, ownerKey, type PeerEndpoint, peerNameKey } from '@tunnel/rules/tunnels';
import { type P2pOffer, type P2pService, peerEndpointOf } from '@tunnel/tunnel-spec';
import { NameLeases } from '../../routing/name-leases.rules.ts';

/** how long the client of a dismissed peer is told that there is nothing */
const P2P_DISMISSED_MS = 60_000;
/** dismissed peers that are remembered; the oldest is forgotten first */
const P2P_DISMISSED_MAX = 10_000;

export interface P2pRules {
  readonly peersPerTunnel: number;
  readonly sameHash: (a: string, b: string) => boolean;
}

export interface PeerRequest {
  readonly name: string;
  readonly secretHash: string;
  readonly service: P2pService;
  /** Whose key it came with. */
  readonly owner: Owner;
  /** The program that asks, for as long as it runs: its session. */
  readonly clientId: string;
  /** Its join before the connection was lost; one of somebody else is none. */
  readonly peerId?: string | undefined;
}

/** One subscriber of one p2p tunnel. */
export interface Peer {
  readonly peerId: string;
  readonly tunnelId: string;
  readonly name: string;
  readonly service: P2pService;
  readonly clientId: string;
  readonly owner: Owner;
}

export type JoinDecision =
  | {
      readonly kind: 'joined';
      readonly peer: Peer;
      readonly isNew: boolean;
      /** The join of the client's last process, which this one takes the place of. */
      readonly replaced?: Peer;
    }
  | { readonly kind: 'refused'; readonly fault: Fault };

interface Published {
  /** Its key among the leases. */
  readonly key: string;
  readonly tunnelId: string;
  readonly offer: P2pOffer;
}

/**
 * Joins of an account that were refused for name, secret or permission; after so many in a minute none is looked at.
 * @limit tunnels: Rejected p2p joins per account and minute | `P2P_TOO_MANY_ATTEMPTS` until the minute has passed
 */
const REFUSED_JOINS = { perWindow: 60, windowMs: 60_000, togetherMs: 60_000, keys: 10_000 };

/** What an unknown name is compared with, so that it takes as long as a wrong secret. No SHA-256 is known that is this. */
const NO_HASH = '0'.repeat(64);

export class P2pRegistry {
  readonly #rules: P2pRules;
  readonly #leases = new NameLeases();
  /** By the key of the lease. */
  readonly #published = new Map<string, Published>();
  /** The keys of each name, for the operator, whose subscribers reach the tunnels of all accounts. */
  readonly #keysOf = new Map<string, Set<string>>();
  readonly #peers = new Map<string, Peer>();
  readonly #peersOf = new Map<string, Set<Peer>>();
  /** Joins of a session that was resumed and has not named them since. A client that was killed and started again does not know them. */
  readonly #unclaimed = new Set<Peer>();
  readonly #refusals = new SlidingWindows(REFUSED_JOINS);
  /** Until when, oldest first. */
  readonly #dismissed = new Map<string, number>();

  constructor(rules: P2pRules) {
    this.#rules = rules;
  }

  // ---- names: one publisher each of an account, or of all where everyone may join, held for its return like the ports and subdomains of a lost session ----

  /** null: it is this tunnel's. The owner of a name may open it again, and so comes back. */
  open(tunnelId: string, offer: P2pOffer, owner: Owner, now: number): Fault | null {
    const { name } = offer;
    const key = peerNameKey(peerEndpointOf(offer, owner));
    if (!this.#leases.lease(key, tunnelId, now)) return new Fault('TUNNEL_P2P_NAME_IN_USE', { name });
    this.#published.set(key, { key, tunnelId, offer });
    this.#keysOf.set(name, (this.#keysOf.get(name) ?? new Set()).add(key));
    return null;
  }

  /** A tunnel serves it right now. */
  isServed(endpoint: PeerEndpoint, now: number): boolean {
    return this.#leases.useOf(peerNameKey(endpoint), now) === 'leased';
  }

  hold(endpoint: PeerEndpoint, tunnelId: string, until: number, now: number): void {
    this.#leases.hold(peerNameKey(endpoint), tunnelId, until, now);
  }

  /** Held without having been open: nobody can join it, since its secret is not known. false: it is somebody's. */
  reserve(endpoint: PeerEndpoint, owner: string, until: number, now: number): boolean {
    const key = peerNameKey(endpoint);
    if (!this.#leases.lease(key, owner, now)) return false;
    this.#leases.hold(key, owner, until, now);
    return true;
  }

  reassign(endpoint: PeerEndpoint, owner: string, next: string, now: number): void {
    this.#leases.reassign(peerNameKey(endpoint), owner, next, now);
  }

  /** Those who had joined, and have no longer: nobody is left with a publisher that is gone. */
  release(endpoint: PeerEndpoint, tunnelId: string): readonly Peer[] {
    const key = peerNameKey(endpoint);
    this.#leases.release(key, tunnelId);
    if (this.#published.get(key)?.tunnelId === tunnelId) this.#unpublish(endpoint.name, key);
    const peers = this.peersOf(tunnelId);
    for (const peer of peers) this.#remove(peer);
    return peers;
  }

  // ---- peers ----

  get peerCount(): number {
    return this.#peers.size;
  }

  get(peerId: string): Peer | undefined {
    return this.#peers.get(peerId);
  }

  peersOf(tunnelId: string): readonly Peer[] {
    return [...(this.#peersOf.get(tunnelId) ?? [])];
  }

  /** `freshId` is its name where it is a new one. */
  join(request: PeerRequest, freshId: string, now: number): JoinDecision {
    const { owner, clientId } = request;
    const account = ownerKey(owner);
    const retryAfterMs = this.#refusals.retryAfterMs(account, now);
    if (retryAfterMs > 0) {
      return refuse(new Fault('P2P_TOO_MANY_ATTEMPTS', { seconds: Math.ceil(retryAfterMs / 1000) }));
    }
    const name = foldSubdomain(request.name);
    const shown = shownText(name);
    const keys = keysFor(name, owner);
    const published = this.#meantBy(name, keys, request, now);
    // Compared in any case, and before anything is said: all who may not get one answer, and wait for it equally long.
    const isSecret = this.#rules.sameHash(request.secretHash, published?.offer.secretHash ?? NO_HASH);
    const isDismissed = this.#isDismissed(clientId, name, now);
    if (published === null || !isSecret || isDismissed) {
      // Nobody guesses at a name that waits for its publisher since the last run: clients that are back sooner must not lock out the others.
      const isAwaited = published === null && keys.some((key) => this.#leases.useOf(key, now) === 'held');
      if (!isDismissed && !isAwaited) this.#refusals.record(account, now);
      return refuse(new Fault('P2P_NOT_FOUND', { name: shown }));
    }
    const { service } = published.offer;
    if (request.service !== service) return refuse(new Fault('P2P_SERVICE_MISMATCH', { name: shown, service }));
    if (this.#leases.useOf(published.key, now) !== 'leased') return refuse(new Fault('P2P_AWAY', { name: shown }));
    return this.#admit(request, published, freshId);
  }

  /** The session of these joins is resumed. Its client names each by its id, unless it was started again: then a new join replaces the old one. */
  resumed(peerIds: Iterable<string>): void {
    for (const peerId of peerIds) {
      const peer = this.#peers.get(peerId);
      if (peer !== undefined) this.#unclaimed.add(peer);
    }
  }

  /** By itself, or because its client is gone. */
  leave(peerId: string): Peer | null {
    const peer = this.#peers.get(peerId) ?? null;
    if (peer !== null) this.#remove(peer);
    return peer;
  }

  /** Its running client is told for a while that there is nothing; that is no attempt to guess, and not counted as one. */
  dismiss(peerId: string, now: number): Peer | null {
    const peer = this.leave(peerId);
    if (peer === null) return null;
    const key = dismissalKey(peer.clientId, peer.name);
    this.#dismissed.delete(key);
    this.#dismissed.set(key, now + P2P_DISMISSED_MS);
    for (const [oldest, until] of this.#dismissed) {
      if (now < until && this.#dismissed.size <= P2P_DISMISSED_MAX) break;
      this.#dismissed.delete(oldest);
    }
    return peer;
  }

  #admit(request: PeerRequest, { tunnelId, offer }: Published, freshId: string): JoinDecision {
    const { clientId, owner, peerId } = request;
    const before = peerId === undefined ? undefined : this.#peers.get(peerId);
    if (before?.clientId === clientId && before.tunnelId === tunnelId) {
      this.#unclaimed.delete(before);
      return { kind: 'joined', peer: before, isNew: false };
    }
    // Before the limit is asked: a client that was started again is not shut out by its own last join.
    const replaced = this.#leftBehind(clientId, tunnelId);
    if (replaced !== undefined) this.#remove(replaced);
    const peers = this.#peersOf.get(tunnelId) ?? new Set();
    const { peersPerTunnel: limit } = this.#rules;
    if (peers.size >= limit) return refuse(new Fault('P2P_PEER_LIMIT', { name: offer.name, limit }));
    const peer = { peerId: freshId, tunnelId, name: offer.name, service: offer.service, clientId, owner };
    this.#peersOf.set(tunnelId, peers.add(peer));
    this.#peers.set(freshId, peer);
    return { kind: 'joined', peer, isNew: true, ...(replaced === undefined ? {} : { replaced }) };
  }

  #leftBehind(clientId: string, tunnelId: string): Peer | undefined {
    if (this.#unclaimed.size === 0) return undefined;
    for (const peer of this.#peersOf.get(tunnelId) ?? []) {
      if (peer.clientId === clientId && this.#unclaimed.has(peer)) return peer;
    }
    return undefined;
  }

  /**
   * The tunnel that a subscriber means by a name: one of its own account, then the one that is open to everyone. The operator may join every tunnel, so
   * besides its own its name means the tunnel with the secret that it shows: by its name alone, an account that publishes the same name could keep the
   * operator from the tunnel of another. null: there is none, or several have that secret.
   */
  #meantBy(name: string, keys: readonly string[], request: PeerRequest, now: number): Published | null {
    const [own, open] = keys.map((key) => this.#publishedAs(key, now));
    if (request.owner.kind === 'account' || own != null) return own ?? open ?? null;
    const all = [...(this.#keysOf.get(name) ?? [])].flatMap((key) => this.#publishedAs(key, now) ?? []);
    const [meant, ...more] = all.filter(({ offer }) => this.#rules.sameHash(request.secretHash, offer.secretHash));
    return more.length > 0 ? null : (meant ?? all[0] ?? null);
  }

  /** null: nobody's, or of a publisher whose time to come back is over. */
  #publishedAs(key: string, now: number): Published | null {
    const published = this.#published.get(key);
    return published === undefined || this.#leases.useOf(key, now) === 'free' ? null : published;
  }

  #unpublish(name: string, key: string): void {
    this.#published.delete(key);
    const keys = this.#keysOf.get(name);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(name);
  }

  #isDismissed(clientId: string, name: string, now: number): boolean {
    return now < (this.#dismissed.get(dismissalKey(clientId, name)) ?? 0);
  }

  #remove(peer: Peer): void {
    this.#unclaimed.delete(peer);
    this.#peers.delete(peer.peerId);
    const peers = this.#peersOf.get(peer.tunnelId);
    peers?.delete(peer);
    if (peers?.size === 0) this.#peersOf.delete(peer.tunnelId);
  }
}

/**
 * Where a subscriber looks for a name: at its own account, then among the names that are open to everyone. A name with a slash is none: as one that is
 * open to everyone it would be the key of another account's name.
 */
const keysFor = (name: string, owner: Owner): readonly string[] =>
  name.includes('/')
    ? []
    : (['account', 'anyone'] as const).map((allow) => peerNameKey(peerEndpointOf({ name, allow }, owner)));

/** Names have no space. */
const dismissalKey = (clientId: string, name: string): string => `${name} ${clientId}`;

const refuse = (fault: Fault): JoinDecision => ({ kind: 'refused', fault });
