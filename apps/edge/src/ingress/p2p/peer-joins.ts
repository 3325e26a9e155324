// Subscribers of all p2p tunnels: admits them by the rules of p2p-registry, notifies both sides of joins and leaves, and keeps their state.
// A subscriber is a visitor: it has no tunnel and no registration log entry, and stays as long as its session and the joined tunnel.

import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, DirectOutcome, MessageOf, StreamReason } from '@tunnel/protocol';
import { type Owner, ownerKey, type PeerEndpoint } from '@tunnel/rules/tunnels';
import { type Clock, equalInConstantTime, type Logger, LogLimiter, randomId } from '@tunnel/runtime';
import { type P2pOffer } from '@tunnel/tunnel-spec';
import type { PeerNames } from '../../routing/endpoints.ts';
import type { Registry } from '../../routing/registry.ts';
import { RelayTotals } from '../tcp/relay-totals.ts';
import { JoinedPeer } from './joined-peer.ts';
import { type JoinDecision, P2pRegistry, type Peer, type PeerRequest } from './p2p-registry.rules.ts';

export type GoneReason = MessageOf<'PeerGone'>['reason'];

export interface PeerJoinsOptions {
  readonly peersPerTunnel: number;
  readonly tunnels: Pick<Registry, 'get'>;
  /** Sends a message to the client of a session. Dropped if the client is disconnected. */
  readonly tell: (sessionId: string, message: ControlMessageInput) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Compares two hashes of p2p secrets in constant time. */
  readonly sameHash?: (a: string, b: string) => boolean;
}

const ENDED: StreamReason = { code: 'cancelled', text: 'the peer is no longer connected' };

/**
 * Joins, relayed bytes and rejections since the start, and outcomes of direct connection attempts. A request is a subscriber that joined.
 */
export class PeerTotals extends RelayTotals {
  /** Attempts by outcome, as reported by publishers. All outcomes are present from the first metrics scrape. */
  readonly attempts: Record<DirectOutcome, number> = {
    direct: 0,
    'udp-blocked': 0,
    'random-ports': 0,
    'no-answer': 0,
    'no-transport': 0,
  };
}

export class PeerJoins implements PeerNames {
  readonly totals = new PeerTotals();
  readonly #options: PeerJoinsOptions;
  readonly #registry: P2pRegistry;
  readonly #log: LogLimiter;
  readonly #joined = new Map<string, JoinedPeer>();
  readonly #bySession = new Map<string, Set<JoinedPeer>>();
  /** Times until which p2p tunnels with a disconnected client are held. */
  readonly #heldUntil = new Map<string, number>();
  /** Most recently departed peers of each tunnel. Sent to a publisher after it reconnects, because it may have missed a departure. */
  readonly #gone = new Map<string, Map<string, GoneReason>>();
  #isSilent = false;

  constructor(options: PeerJoinsOptions) {
    const { peersPerTunnel, sameHash = equalInConstantTime, clock, logger } = options;
    this.#options = options;
    this.#registry = new P2pRegistry({ peersPerTunnel, sameHash });
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  /** Number of joined peers by the path of new connections, as reported by publishers. */
  get counts(): Readonly<Record<JoinedPeer['path'], number>> {
    const counts = { direct: 0, relay: 0 };
    for (const { path } of this.#joined.values()) counts[path] += 1;
    return counts;
  }

  // ---- names (PeerNames) ----

  open(tunnelId: string, offer: P2pOffer, owner: Owner): Fault | null {
    const refusal = this.#registry.open(tunnelId, offer, owner, this.#now());
    if (refusal === null) this.#heldUntil.delete(tunnelId);
    return refusal;
  }

  isServed(endpoint: PeerEndpoint): boolean {
    return this.#registry.isServed(endpoint, this.#now());
  }

  hold(endpoint: PeerEndpoint, tunnelId: string, until: number): void {
    this.#registry.hold(endpoint, tunnelId, until, this.#now());
    this.#heldUntil.set(tunnelId, until);
  }

  reserve(endpoint: PeerEndpoint, owner: string, until: number): boolean {
    return this.#registry.reserve(endpoint, owner, until, this.#now());
  }

  reassign(endpoint: PeerEndpoint, owner: string, next: string): void {
    this.#registry.reassign(endpoint, owner, next, this.#now());
  }

  /**
   * Ends a tunnel. Peers get P2P_AWAY if the client did not reconnect in time, because the tunnel may still exist on the client. Otherwise
   * peers get P2P_NOT_FOUND.
   */
  release(endpoint: PeerEndpoint, tunnelId: string): void {
    const isLate = this.#now() >= (this.#heldUntil.get(tunnelId) ?? Number.POSITIVE_INFINITY);
    const fault = new Fault(isLate ? 'P2P_AWAY' : 'P2P_NOT_FOUND', { name: endpoint.name });
    for (const peer of this.#registry.release(endpoint, tunnelId)) this.#end(peer, 'revoked', fault);
    this.#heldUntil.delete(tunnelId);
    this.#gone.delete(tunnelId);
  }

  // ---- joining and leaving ----

  join(request: PeerRequest, clientAddr: string): JoinedPeer | Fault {
    const decision = this.#registry.join(request, randomId('peer'), this.#now());
    if (decision.kind === 'refused') return decision.fault;
    const known = this.#joined.get(decision.peer.peerId);
    // The publisher is notified of the end first, so that it never counts a client twice.
    if (decision.replaced !== undefined) this.#end(decision.replaced, 'left', null);
    if (known === undefined) return this.#admit(decision, clientAddr);
    known.clientAddr = clientAddr;
    return known;
  }

  #admit({ peer }: Extract<JoinDecision, { kind: 'joined' }>, clientAddr: string): JoinedPeer | Fault {
    const tunnel = this.#options.tunnels.get(peer.tunnelId);
    if (tunnel === undefined) {
      // The p2p name is open, but its tunnel is not registered yet.
      this.#registry.leave(peer.peerId);
      return new Fault('P2P_AWAY', { name: peer.name });
    }
    const publisherId = tunnel.sessionId;
    const joined = new JoinedPeer({ peer, publisherId, clientAddr, since: this.#options.clock.now() });
    this.#joined.set(peer.peerId, joined);
    this.#bySession.set(peer.clientId, (this.#bySession.get(peer.clientId) ?? new Set()).add(joined));
    tunnel.counters.addRequest();
    this.totals.requests += 1;
    this.#tellJoined(joined);
    const fields = { tunnel_id: peer.tunnelId, peer_id: peer.peerId, client: clientAddr };
    this.#log.log('info', `peer-joined ${ownerKey(tunnel.owner)}`, fields, 'peer joined');
    return joined;
  }

  /** Ends a join on the subscriber's request. Ignored for joins of other sessions. */
  leave(sessionId: string, peerId: string): void {
    const peer = this.find(sessionId, peerId)?.peer;
    if (peer === undefined) return;
    this.#registry.leave(peerId);
    this.#end(peer, 'left', null);
  }

  /** Called when a subscriber's session is resumed, by the same process or after a restart. */
  sessionResumed(sessionId: string): void {
    this.#registry.resumed([...(this.#bySession.get(sessionId) ?? [])].map(({ peer }) => peer.peerId));
  }

  /** Ends all joins of a session. `told` is the error sent to the subscriber for each peer, or null for none. */
  sessionOver(sessionId: string, reason: GoneReason, told: Fault | null): void {
    for (const { peer } of [...(this.#bySession.get(sessionId) ?? [])]) {
      this.#registry.leave(peer.peerId);
      this.#end(peer, reason, told);
    }
  }

  /** Dismisses a peer; its client then gets "not found" for a while. Returns false if the tunnel has no such peer. */
  dismiss(tunnelId: string, peerId: string): boolean {
    if (this.#joined.get(peerId)?.peer.tunnelId !== tunnelId) return false;
    const peer = this.#registry.dismiss(peerId, this.#now());
    if (peer !== null) this.#end(peer, 'dismissed', new Fault('P2P_DISMISSED', { name: peer.name }));
    return peer !== null;
  }

  /**
   * Stops all notifications, because the edge is shutting down. Direct connections between clients continue, and the clients will
   * reconnect.
   */
  shutDown(): void {
    this.#isSilent = true;
  }

  // ---- publishers ----

  /** Notifies a publisher after its registration of joined peers, and of peers that left while the publisher may have been disconnected. */
  publisherReady(tunnelId: string): void {
    for (const [peerId, reason] of this.#gone.get(tunnelId) ?? []) {
      const tunnel = this.#options.tunnels.get(tunnelId);
      if (tunnel !== undefined) this.#tell(tunnel.sessionId, goneMessage(tunnelId, peerId, reason));
    }
    for (const { peerId } of this.#registry.peersOf(tunnelId)) {
      const joined = this.#joined.get(peerId);
      if (joined !== undefined) this.#tellJoined(joined);
    }
  }

  /** Records a publisher's report on its own peers. Reports on other peers are ignored. */
  report(sessionId: string, report: MessageOf<'PeerReport'>): void {
    const joined = this.#joined.get(report.peer_id);
    if (joined?.publisherId !== sessionId || joined.peer.tunnelId !== report.tunnel_id) return;
    joined.report(report);
    if (report.attempt !== undefined) this.totals.attempts[report.attempt] += 1;
  }

  // ---- lookups ----

  /** Finds a p2p join of a session. Returns undefined if the session has no such join. */
  find(sessionId: string, peerId: string): JoinedPeer | undefined {
    const joined = this.#joined.get(peerId);
    return joined?.peer.clientId === sessionId ? joined : undefined;
  }

  /** Returns the peers of a p2p tunnel, in the order of joining. */
  of(tunnelId: string): JoinedPeer[] {
    return this.#registry.peersOf(tunnelId).flatMap(({ peerId }) => this.#joined.get(peerId) ?? []);
  }

  // ---- ending a join ----

  /** Ends a join. `fault` is sent to the subscriber, or null if the subscriber knows already. */
  #end(peer: Peer, reason: GoneReason, fault: Fault | null): void {
    const { peerId, tunnelId, clientId } = peer;
    const joined = this.#joined.get(peerId);
    if (joined === undefined) return;
    this.#joined.delete(peerId);
    const others = this.#bySession.get(clientId);
    others?.delete(joined);
    if (others?.size === 0) this.#bySession.delete(clientId);
    this.#remember(tunnelId, peerId, reason);
    // Both sides are notified before their streams are reset, because a reset without a notification looks like a network failure.
    if (fault !== null) {
      const { code, message, retryable } = fault;
      this.#tell(clientId, { type: 'PeerError', peer_id: peerId, code, message, retryable });
    }
    this.#tell(joined.publisherId, goneMessage(tunnelId, peerId, reason));
    joined.resetRelays(ENDED);
  }

  #remember(tunnelId: string, peerId: string, reason: GoneReason): void {
    const gone = this.#gone.get(tunnelId) ?? new Map<string, GoneReason>();
    this.#gone.set(tunnelId, gone.set(peerId, reason));
    // The list is limited to the peers that can be joined at once, because no more can leave while the publisher is disconnected.
    for (const oldest of gone.keys()) {
      if (gone.size <= this.#options.peersPerTunnel) return;
      gone.delete(oldest);
    }
  }

  #tellJoined({ peer, publisherId, clientAddr }: JoinedPeer): void {
    const { tunnelId, peerId } = peer;
    this.#tell(publisherId, { type: 'PeerJoined', tunnel_id: tunnelId, peer_id: peerId, client_addr: clientAddr });
  }

  #tell(sessionId: string, message: ControlMessageInput): void {
    if (!this.#isSilent) this.#options.tell(sessionId, message);
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}

const goneMessage = (tunnelId: string, peerId: string, reason: GoneReason): ControlMessageInput => ({
  type: 'PeerGone',
  tunnel_id: tunnelId,
  peer_id: peerId,
  reason,
});
