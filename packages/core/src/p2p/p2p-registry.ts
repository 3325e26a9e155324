// Who publishes which p2p name, who may join it, and who has. It says; the edge joins. Mutates in place; time, ids and the comparison of hashes are
// given to it: one that takes the same time for every two is the edge's to bring.
import { Fault } from '@tunnel/errors';
import { FailureWindow } from '../failure-window.ts';
import { CORE_LIMITS } from '../limits.ts';
import { NameLeases } from '../name-leases.ts';
import { foldSubdomain, shownText } from '../names.ts';
import { maySee, type Owner, ownerKey } from '../owner.ts';
import type { P2pOffer, P2pService } from './p2p-offer.ts';

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
  | { readonly kind: 'joined'; readonly peer: Peer; readonly isNew: boolean }
  | { readonly kind: 'refused'; readonly fault: Fault };

interface Published {
  readonly tunnelId: string;
  readonly offer: P2pOffer;
  readonly owner: Owner;
}

/** What an unknown name is compared with, so that it takes as long as a wrong secret. No SHA-256 is known that is this. */
const NO_HASH = '0'.repeat(64);

export class P2pRegistry {
  readonly #rules: P2pRules;
  readonly #leases = new NameLeases();
  readonly #published = new Map<string, Published>();
  readonly #peers = new Map<string, Peer>();
  readonly #peersOf = new Map<string, Set<Peer>>();
  readonly #refusals = new FailureWindow({
    perWindow: CORE_LIMITS.P2P_REFUSALS_PER_MINUTE,
    windowMs: 60_000,
    addressesMax: CORE_LIMITS.P2P_REFUSED_ACCOUNTS_MAX,
  });
  /** Until when, oldest first. */
  readonly #dismissed = new Map<string, number>();

  constructor(rules: P2pRules) {
    this.#rules = rules;
  }

  // ---- names: one publisher each, held for its return like the ports and subdomains of a lost session ----

  /** null: it is this tunnel's. The owner of a name may open it again, and so comes back. */
  open(tunnelId: string, offer: P2pOffer, owner: Owner, now: number): Fault | null {
    const { name } = offer;
    if (!this.#leases.lease(name, tunnelId, now)) return new Fault('TUNNEL_P2P_NAME_IN_USE', { name });
    this.#published.set(name, { tunnelId, offer, owner });
    return null;
  }

  hold(name: string, tunnelId: string, until: number, now: number): void {
    this.#leases.hold(name, tunnelId, until, now);
  }

  /** Held without having been open: nobody can join it, since its secret is not known. false: it is somebody's. */
  reserve(name: string, owner: string, until: number, now: number): boolean {
    if (!this.#leases.lease(name, owner, now)) return false;
    this.#leases.hold(name, owner, until, now);
    return true;
  }

  reassign(name: string, owner: string, next: string, now: number): void {
    this.#leases.reassign(name, owner, next, now);
  }

  /** Those who had joined, and have no longer: nobody is left with a publisher that is gone. */
  release(name: string, tunnelId: string): readonly Peer[] {
    this.#leases.release(name, tunnelId);
    if (this.#published.get(name)?.tunnelId === tunnelId) this.#published.delete(name);
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
    const verdict = this.#refusals.check(account, now);
    if (!verdict.allowed) {
      return refuse(new Fault('P2P_TOO_MANY_ATTEMPTS', { seconds: Math.ceil(verdict.retryAfterMs / 1000) }));
    }
    const name = foldSubdomain(request.name);
    const shown = shownText(name);
    const published = this.#publishedAs(name, now);
    // Compared in any case, and before anything is said: all who may not get one answer, and wait for it equally long.
    const isSecret = this.#rules.sameHash(request.secretHash, published?.offer.secretHash ?? NO_HASH);
    const isDismissed = this.#isDismissed(clientId, name, now);
    if (published === null || !isSecret || !mayJoin(owner, published) || isDismissed) {
      // Nobody guesses at a name that waits for its publisher since the last run: clients that are back sooner must not lock out the others.
      const isAwaited = published === null && this.#leases.useOf(name, now) === 'held';
      if (!isDismissed && !isAwaited) this.#refusals.record(account, now);
      return refuse(new Fault('P2P_NOT_FOUND', { name: shown }));
    }
    const { service } = published.offer;
    if (request.service !== service) return refuse(new Fault('P2P_SERVICE_MISMATCH', { name: shown, service }));
    if (this.#leases.useOf(name, now) !== 'leased') return refuse(new Fault('P2P_AWAY', { name: shown }));
    return this.#admit(request, published, freshId);
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
    this.#dismissed.set(key, now + CORE_LIMITS.P2P_DISMISSED_MS);
    for (const [oldest, until] of this.#dismissed) {
      if (now < until && this.#dismissed.size <= CORE_LIMITS.P2P_DISMISSED_MAX) break;
      this.#dismissed.delete(oldest);
    }
    return peer;
  }

  #admit(request: PeerRequest, { tunnelId, offer }: Published, freshId: string): JoinDecision {
    const { clientId, owner, peerId } = request;
    const before = peerId === undefined ? undefined : this.#peers.get(peerId);
    if (before?.clientId === clientId && before.tunnelId === tunnelId) {
      return { kind: 'joined', peer: before, isNew: false };
    }
    const peers = this.#peersOf.get(tunnelId) ?? new Set();
    const { peersPerTunnel: limit } = this.#rules;
    if (peers.size >= limit) return refuse(new Fault('P2P_PEER_LIMIT', { name: offer.name, limit }));
    const peer = { peerId: freshId, tunnelId, name: offer.name, service: offer.service, clientId, owner };
    this.#peersOf.set(tunnelId, peers.add(peer));
    this.#peers.set(freshId, peer);
    return { kind: 'joined', peer, isNew: true };
  }

  /** null: nobody's, or of a publisher whose time to come back is over. */
  #publishedAs(name: string, now: number): Published | null {
    const published = this.#published.get(name);
    return published === undefined || this.#leases.useOf(name, now) === 'free' ? null : published;
  }

  #isDismissed(clientId: string, name: string, now: number): boolean {
    return now < (this.#dismissed.get(dismissalKey(clientId, name)) ?? 0);
  }

  #remove(peer: Peer): void {
    this.#peers.delete(peer.peerId);
    const peers = this.#peersOf.get(peer.tunnelId);
    peers?.delete(peer);
    if (peers?.size === 0) this.#peersOf.delete(peer.tunnelId);
  }
}

const mayJoin = (owner: Owner, published: Published): boolean =>
  published.offer.allow === 'anyone' || maySee(owner, published.owner);

/** Names have no space. */
const dismissalKey = (clientId: string, name: string): string => `${name} ${clientId}`;

const refuse = (fault: Fault): JoinDecision => ({ kind: 'refused', fault });
