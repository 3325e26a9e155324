// Published p2p names, and the peers that have joined them. Decides only; the edge carries out the joins. Mutable. Time, ids and the
// constant-time hash comparison are passed in.

import { Fault } from '@tunnel/errors';
import { foldSubdomain, shownText } from '@tunnel/rules/names';
import { SlidingWindows } from '@tunnel/rules/rate';
import { type Owner, ownerKey, type PeerEndpoint, peerNameKey } from '@tunnel/rules/tunnels';
import { type P2pOffer, type P2pService, peerEndpointOf } from '@tunnel/tunnel-spec';
import { NameLeases } from '../../routing/name-leases.rules.ts';

/** Time for which the client of a dismissed p2p subscriber gets "not found". */
const P2P_DISMISSED_MS = 60_000;
/** Maximum number of dismissed subscribers remembered. The oldest is forgotten first. */
const P2P_DISMISSED_MAX = 10_000;

export interface P2pRules {
  readonly peersPerTunnel: number;
  readonly sameHash: (a: string, b: string) => boolean;
}

export interface PeerRequest {
  readonly name: string;
  readonly secretHash: string;
  readonly service: P2pService;
  /** Owner of the API key with which the client asked to join a p2p tunnel. */
  readonly owner: Owner;
  /** Session of the client that wants to join, constant while the program runs. */
  readonly clientId: string;
  /** Id of the client's join before the connection was lost. Ignored if the join belongs to another client. */
  readonly peerId?: string | undefined;
}

/** A subscriber of a p2p tunnel. */
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
      /** Join of the client's previous process, which the new join replaces. */
      readonly replaced?: Peer;
    }
  | { readonly kind: 'refused'; readonly fault: Fault };

interface Published {
  /** Key of the lease of the p2p tunnel's name. */
  readonly key: string;
  readonly tunnelId: string;
  readonly offer: P2pOffer;
}

/**
 * Limits rejected joins of an account, for a wrong name, secret or permission. At the limit, further joins are rejected without a check.
 * @limit tunnels: Rejected p2p joins per account and minute | `P2P_TOO_MANY_ATTEMPTS` until the minute has passed
 */
const REFUSED_JOINS = { perWindow: 60, windowMs: 60_000, togetherMs: 60_000, keys: 10_000 };

/** Hash compared for unknown names, so that an unknown name takes as long as a wrong secret. No input with this SHA-256 hash is known. */
const NO_HASH = '0'.repeat(64);

export class P2pRegistry {
  readonly #rules: P2pRules;
  readonly #leases = new NameLeases();
  /** Published p2p tunnels, by the key of their name's lease. */
  readonly #published = new Map<string, Published>();
  /** Lease keys of each name, for the operator, because the operator's subscribers can join tunnels of all accounts. */
  readonly #keysOf = new Map<string, Set<string>>();
  readonly #peers = new Map<string, Peer>();
  readonly #peersOf = new Map<string, Set<Peer>>();
  /**
   * Joins of a resumed session that the client has not claimed yet. A client that was killed and restarted does not know its earlier joins.
   */
  readonly #unclaimed = new Set<Peer>();
  readonly #refusals = new SlidingWindows(REFUSED_JOINS);
  /** Times when dismissals of subscribers expire, oldest first. */
  readonly #dismissed = new Map<string, number>();

  constructor(rules: P2pRules) {
    this.#rules = rules;
  }

  // ---- names: unique per account, or globally if open to everyone; held while the publisher is disconnected ----

  /** Opens a name for a tunnel. Returns null on success. The owner of a held name can open it again. */
  open(tunnelId: string, offer: P2pOffer, owner: Owner, now: number): Fault | null {
    const { name } = offer;
    const key = peerNameKey(peerEndpointOf(offer, owner));
    if (!this.#leases.lease(key, tunnelId, now)) return new Fault('TUNNEL_P2P_NAME_IN_USE', { name });
    this.#published.set(key, { key, tunnelId, offer });
    this.#keysOf.set(name, (this.#keysOf.get(name) ?? new Set()).add(key));
    return null;
  }

  /** Returns whether a connected tunnel serves the p2p name. */
  isServed(endpoint: PeerEndpoint, now: number): boolean {
    return this.#leases.useOf(peerNameKey(endpoint), now) === 'leased';
  }

  hold(endpoint: PeerEndpoint, tunnelId: string, until: number, now: number): void {
    this.#leases.hold(peerNameKey(endpoint), tunnelId, until, now);
  }

  /** Holds a name that was not open before. It cannot be joined, because its secret is unknown. Returns false if the name is taken. */
  reserve(endpoint: PeerEndpoint, owner: string, until: number, now: number): boolean {
    const key = peerNameKey(endpoint);
    if (!this.#leases.lease(key, owner, now)) return false;
    this.#leases.hold(key, owner, until, now);
    return true;
  }

  reassign(endpoint: PeerEndpoint, owner: string, next: string, now: number): void {
    this.#leases.reassign(peerNameKey(endpoint), owner, next, now);
  }

  /** Releases a name. Returns the peers that had joined; their joins end with the publisher. */
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

  /** Joins a subscriber to a p2p tunnel. `freshId` becomes the peer's id if the join is new. */
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
    // The secret is compared in any case and before any other check, so that all rejected requests get the same answer after the same time.
    const isSecret = this.#rules.sameHash(request.secretHash, published?.offer.secretHash ?? NO_HASH);
    const isDismissed = this.#isDismissed(clientId, name, now);
    if (published === null || !isSecret || isDismissed) {
      // Joins to a name held for its publisher since the last run are not counted as guesses: subscribers that reconnect earlier must not
      // lock out the account.
      const isAwaited = published === null && keys.some((key) => this.#leases.useOf(key, now) === 'held');
      if (!isDismissed && !isAwaited) this.#refusals.record(account, now);
      return refuse(new Fault('P2P_NOT_FOUND', { name: shown }));
    }
    const { service } = published.offer;
    if (request.service !== service) return refuse(new Fault('P2P_SERVICE_MISMATCH', { name: shown, service }));
    if (this.#leases.useOf(published.key, now) !== 'leased') return refuse(new Fault('P2P_AWAY', { name: shown }));
    return this.#admit(request, published, freshId);
  }

  /**
   * Marks the joins of a resumed session. The client claims each join by its id. If the client was restarted, a new join replaces the old
   * join.
   */
  resumed(peerIds: Iterable<string>): void {
    for (const peerId of peerIds) {
      const peer = this.#peers.get(peerId);
      if (peer !== undefined) this.#unclaimed.add(peer);
    }
  }

  /** Removes a peer that left or lost its client. Returns null if the peer is unknown. */
  leave(peerId: string): Peer | null {
    const peer = this.#peers.get(peerId) ?? null;
    if (peer !== null) this.#remove(peer);
    return peer;
  }

  /** Removes a peer. For a while its running client gets "not found"; such attempts are not counted as guesses. */
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
    // The earlier join of a restarted client is removed before the limit is checked, so that it cannot cause a rejection.
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
   * Finds the tunnel meant by a subscriber: a tunnel of the same account, then the tunnel open to everyone. The operator can join every
   * tunnel: after the operator's own tunnels, the secret selects the tunnel, because otherwise an account could hide another account's
   * tunnel by publishing the same name. Returns null if there is no such tunnel, or several share the secret.
   */
  #meantBy(name: string, keys: readonly string[], request: PeerRequest, now: number): Published | null {
    const [own, open] = keys.map((key) => this.#publishedAs(key, now));
    if (request.owner.kind === 'account' || own != null) return own ?? open ?? null;
    const all = [...(this.#keysOf.get(name) ?? [])].flatMap((key) => this.#publishedAs(key, now) ?? []);
    const [meant, ...more] = all.filter(({ offer }) => this.#rules.sameHash(request.secretHash, offer.secretHash));
    return more.length > 0 ? null : (meant ?? all[0] ?? null);
  }

  /** Returns null if the name is not published, or the publisher's time to reconnect has expired. */
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
 * Returns the lease keys under which a subscriber looks up a name: its account's name, then the name open to everyone. A name with a slash
 * has no keys, because as a name open to everyone it would equal the key of another account's name.
 */
const keysFor = (name: string, owner: Owner): readonly string[] =>
  name.includes('/')
    ? []
    : (['account', 'anyone'] as const).map((allow) => peerNameKey(peerEndpointOf({ name, allow }, owner)));

/** The space is a safe separator in keys of dismissals, because names contain no space. */
const dismissalKey = (clientId: string, name: string): string => `${name} ${clientId}`;

const refuse = (fault: Fault): JoinDecision => ({ kind: 'refused', fault });
