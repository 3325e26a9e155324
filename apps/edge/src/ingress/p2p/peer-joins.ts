// The subscribers of all p2p tunnels: lets them in as the rules of p2p-registry say, tells both sides of each beginning and end, and keeps what is known of
// each. A subscriber is a visitor: it has no tunnel and no entry in the log, and lives as long as its session and the tunnel it joined.

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
  /** To the client of this session; one that is away hears nothing. */
  readonly tell: (sessionId: string, message: ControlMessageInput) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  /** One that takes the same time for every two hashes. */
  readonly sameHash?: (a: string, b: string) => boolean;
}

const ENDED: StreamReason = { code: 'cancelled', text: 'the peer is no longer connected' };

/** Joins, relayed bytes and refusals since the start, and how tries to go direct ended. A request is a subscriber that joined. */
export class PeerTotals extends RelayTotals {
  /** As publishers report them; those that go direct name them all from the first scrape on. */
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
  readonly #given: PeerJoinsOptions;
  readonly #registry: P2pRegistry;
  readonly #log: LogLimiter;
  readonly #joined = new Map<string, JoinedPeer>();
  readonly #bySession = new Map<string, Set<JoinedPeer>>();
  /** Until when tunnels whose client is away are waited for. */
  readonly #heldUntil = new Map<string, number>();
  /** Of each tunnel the last peers that have gone: a publisher that was away, or whose connection broke just then, is told when it is back. */
  readonly #gone = new Map<string, Map<string, GoneReason>>();
  #isSilent = false;

  constructor(options: PeerJoinsOptions) {
    const { peersPerTunnel, sameHash = equalInConstantTime, clock, logger } = options;
    this.#given = options;
    this.#registry = new P2pRegistry({ peersPerTunnel, sameHash });
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  /** By the way that new connections take, as the publishers say. */
  get counts(): Readonly<Record<JoinedPeer['path'], number>> {
    const counts = { direct: 0, relay: 0 };
    for (const { path } of this.#joined.values()) counts[path] += 1;
    return counts;
  }

  // ---- the names, as endpoints of tunnels ----

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

  /** The end of the tunnel. Only one whose client did not come back in time may still live on the other side. */
  release(endpoint: PeerEndpoint, tunnelId: string): void {
    const isLate = this.#now() >= (this.#heldUntil.get(tunnelId) ?? Number.POSITIVE_INFINITY);
    const fault = new Fault(isLate ? 'P2P_AWAY' : 'P2P_NOT_FOUND', { name: endpoint.name });
    for (const peer of this.#registry.release(endpoint, tunnelId)) this.#end(peer, 'revoked', fault);
    this.#heldUntil.delete(tunnelId);
    this.#gone.delete(tunnelId);
  }

  // ---- subscribers come and go ----

  join(request: PeerRequest, clientAddr: string): JoinedPeer | Fault {
    const decision = this.#registry.join(request, randomId('peer'), this.#now());
    if (decision.kind === 'refused') return decision.fault;
    const known = this.#joined.get(decision.peer.peerId);
    // Its publisher hears of the end before the beginning: it never counts a client twice.
    if (decision.replaced !== undefined) this.#end(decision.replaced, 'left', null);
    if (known === undefined) return this.#admit(decision, clientAddr);
    known.clientAddr = clientAddr;
    return known;
  }

  #admit({ peer }: Extract<JoinDecision, { kind: 'joined' }>, clientAddr: string): JoinedPeer | Fault {
    const tunnel = this.#given.tunnels.get(peer.tunnelId);
    if (tunnel === undefined) {
      // Its name is open and it is not listed yet.
      this.#registry.leave(peer.peerId);
      return new Fault('P2P_AWAY', { name: peer.name });
    }
    const publisherId = tunnel.sessionId;
    const joined = new JoinedPeer({ peer, publisherId, clientAddr, since: this.#given.clock.now() });
    this.#joined.set(peer.peerId, joined);
    this.#bySession.set(peer.clientId, (this.#bySession.get(peer.clientId) ?? new Set()).add(joined));
    tunnel.counters.addRequest();
    this.totals.requests += 1;
    this.#tellJoined(joined);
    const fields = { tunnel_id: peer.tunnelId, peer_id: peer.peerId, client: clientAddr };
    this.#log.log('info', `peer-joined ${ownerKey(tunnel.owner)}`, fields, 'peer joined');
    return joined;
  }

  /** By itself: one of another session is none. */
  leave(sessionId: string, peerId: string): void {
    const peer = this.find(sessionId, peerId)?.peer;
    if (peer === undefined) return;
    this.#registry.leave(peerId);
    this.#end(peer, 'left', null);
  }

  /** A subscriber's session is taken up again, by the same process or by one that was started anew. */
  sessionResumed(sessionId: string): void {
    this.#registry.resumed([...(this.#bySession.get(sessionId) ?? [])].map(({ peer }) => peer.peerId));
  }

  /** A subscriber's session is over. `told`: what the subscriber hears of each of its peers; null: nothing. */
  sessionOver(sessionId: string, reason: GoneReason, told: Fault | null): void {
    for (const { peer } of [...(this.#bySession.get(sessionId) ?? [])]) {
      this.#registry.leave(peer.peerId);
      this.#end(peer, reason, told);
    }
  }

  /** Its running client is told for a while that there is nothing. false: there is no such peer of this tunnel. */
  dismiss(tunnelId: string, peerId: string): boolean {
    if (this.#joined.get(peerId)?.peer.tunnelId !== tunnelId) return false;
    const peer = this.#registry.dismiss(peerId, this.#now());
    if (peer !== null) this.#end(peer, 'dismissed', new Fault('P2P_DISMISSED', { name: peer.name }));
    return peer !== null;
  }

  /** The edge ends: what runs between two clients is theirs, and they come back. Nobody is told that a join is over. */
  shutDown(): void {
    this.#isSilent = true;
  }

  // ---- publishers ----

  /** It has been told its registration: who is joined, and who has gone while it may not have heard of it. */
  publisherReady(tunnelId: string): void {
    for (const [peerId, reason] of this.#gone.get(tunnelId) ?? []) {
      const tunnel = this.#given.tunnels.get(tunnelId);
      if (tunnel !== undefined) this.#tell(tunnel.sessionId, goneMessage(tunnelId, peerId, reason));
    }
    for (const { peerId } of this.#registry.peersOf(tunnelId)) {
      const joined = this.#joined.get(peerId);
      if (joined !== undefined) this.#tellJoined(joined);
    }
  }

  /** Of a publisher, on its own peers; what it says of others is nothing. */
  report(sessionId: string, report: MessageOf<'PeerReport'>): void {
    const joined = this.#joined.get(report.peer_id);
    if (joined?.publisherId !== sessionId || joined.peer.tunnelId !== report.tunnel_id) return;
    joined.report(report);
    if (report.attempt !== undefined) this.totals.attempts[report.attempt] += 1;
  }

  // ---- looking ----

  /** undefined: no join of this session. */
  find(sessionId: string, peerId: string): JoinedPeer | undefined {
    const joined = this.#joined.get(peerId);
    return joined?.peer.clientId === sessionId ? joined : undefined;
  }

  /** In the order in which they joined. */
  of(tunnelId: string): JoinedPeer[] {
    return this.#registry.peersOf(tunnelId).flatMap(({ peerId }) => this.#joined.get(peerId) ?? []);
  }

  // ---- the end of a join ----

  /** `fault` is what the subscriber is told; null: it knows. */
  #end(peer: Peer, reason: GoneReason, fault: Fault | null): void {
    const { peerId, tunnelId, clientId } = peer;
    const joined = this.#joined.get(peerId);
    if (joined === undefined) return;
    this.#joined.delete(peerId);
    const others = this.#bySession.get(clientId);
    others?.delete(joined);
    if (others?.size === 0) this.#bySession.delete(clientId);
    this.#remember(tunnelId, peerId, reason);
    // Both hear of it before their streams end: a reset alone looks like a network that failed.
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
    // As many as can have been joined at once: no more can go while the publisher is away.
    for (const oldest of gone.keys()) {
      if (gone.size <= this.#given.peersPerTunnel) return;
      gone.delete(oldest);
    }
  }

  #tellJoined({ peer, publisherId, clientAddr }: JoinedPeer): void {
    const { tunnelId, peerId } = peer;
    this.#tell(publisherId, { type: 'PeerJoined', tunnel_id: tunnelId, peer_id: peerId, client_addr: clientAddr });
  }

  #tell(sessionId: string, message: ControlMessageInput): void {
    if (!this.#isSilent) this.#given.tell(sessionId, message);
  }

  #now(): number {
    return this.#given.clock.monotonic();
  }
}

const goneMessage = (tunnelId: string, peerId: string, reason: GoneReason): ControlMessageInput => ({
  type: 'PeerGone',
  tunnel_id: tunnelId,
  peer_id: peerId,
  reason,
});
