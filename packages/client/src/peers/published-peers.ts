// The peers of one p2p tunnel at its publisher: takes relay streams from the edge, serves subscribers' streams, and reports their paths to
// the edge.
import { type DatagramStream, type MuxStream, processBudget, type ReportInternalError } from '@tunnel/mux';
import type { DirectOutcome, Peer, PeerNetwork, PeerPath, PeerPublisher } from '@tunnel/peer';
import type { ControlMessageInput, MessageOf, StreamHead, StreamReason } from '@tunnel/protocol';
import type { Clock, Secret } from '@tunnel/runtime';
import type { PublishedPeer, TunnelEntry, TunnelPeers } from '../tunnels/tunnel.ts';
import type { TunnelEvent } from '../tunnels/tunnel-event.ts';
import type { PeerIdentity, PeerPackage } from './peer-network.ts';
import type { PeerEvent } from './peer-types.ts';

/** Interval at which a publisher reports direct p2p traffic to the edge. */
export const PEER_REPORT_EVERY_MS = 5000;

export interface PublishedPeersOptions {
  readonly tunnel: TunnelEntry;
  readonly identity: PeerIdentity;
  readonly secret: Secret;
  readonly network: PeerNetwork;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  readonly emit: (event: PeerEvent | TunnelEvent) => void;
  /** Sends a message about the p2p tunnel to the edge while the edge knows the tunnel. */
  readonly tell: (message: ControlMessageInput) => void;
  readonly serve: (stream: MuxStream) => void;
  readonly serveFlow: (stream: DatagramStream, head: StreamHead) => void;
}

export class PublishedPeers implements TunnelPeers {
  readonly #options: PublishedPeersOptions;
  readonly #publisher: PeerPublisher;
  /** Addresses of joined peers by peer id, as seen by the edge. They can arrive before or after the peer's proof. */
  readonly #addresses = new Map<string, string>();
  /** Subscribers that proved the secret but are not reported yet, because their address is unknown. */
  readonly #untold = new Set<Peer>();
  /** Bytes of direct traffic per subscriber in the last report to the edge. */
  readonly #reported = new WeakMap<Peer, number>();
  #reportedAt: number;

  constructor(loaded: PeerPackage, options: PublishedPeersOptions) {
    this.#options = options;
    const { identity, secret, network, clock, report } = options;
    this.#reportedAt = clock.monotonic();
    const { p2pName: name, service, direct } = identity;
    this.#publisher = new loaded.PeerPublisher(
      { name, secret, service, direct, network, clock, budget: processBudget(), report },
      {
        onStream: (stream) => options.serve(stream),
        onDatagramStream: (stream, head) => options.serveFlow(stream, head),
        onJoined: (peer, isNew) => this.#onJoined(peer, isNew),
        onPath: (peer, path) => this.#onPath(peer, path),
        onAttempt: (peer, outcome) => this.#report(peer, outcome),
        onGone: (peer, reason) => this.#onGone(peer, reason),
        onFailed: (_peerId, fault) =>
          options.emit({ type: 'tunnel-error', tunnel: options.tunnel, fault, final: false }),
      },
    );
  }

  get list(): readonly PublishedPeer[] {
    return this.#publisher.peers.map((peer) => ({
      peerId: peer.peerId,
      clientAddr: this.#addresses.get(peer.peerId) ?? '',
      ...peer.path,
      ...peer.bytes,
    }));
  }

  accept(stream: MuxStream, peerId: string): void {
    stream.accept();
    this.#publisher.acceptRelay(stream, peerId);
  }

  onMessage(message: MessageOf<'PeerJoined'> | MessageOf<'PeerGone'>): void {
    const { peer_id: peerId } = message;
    if (message.type === 'PeerJoined') {
      this.#addresses.set(peerId, message.client_addr);
      for (const peer of this.#untold) if (peer.peerId === peerId) this.#tellJoined(peer, message.client_addr);
      return;
    }
    // A peer lost only by the edge keeps its direct path and may return.
    if (message.reason !== 'lost') this.#publisher.dismiss(peerId, message.reason);
    this.#addresses.delete(peerId);
  }

  reportAll(): void {
    for (const peer of this.#publisher.peers) this.#report(peer);
  }

  /** Reports direct traffic to the edge when due. Called every CLIENT_TICK_MS by the owner of the timer. */
  tick(now: number): void {
    if (now - this.#reportedAt < PEER_REPORT_EVERY_MS) return;
    this.#reportedAt = now;
    for (const peer of this.#publisher.peers) {
      if (this.#reported.get(peer) !== peer.bytes.directBytes) this.#report(peer);
    }
  }

  close(reason: StreamReason): void {
    this.#publisher.close(reason);
    this.#addresses.clear();
  }

  #onJoined(peer: Peer, isNew: boolean): void {
    if (isNew) {
      const address = this.#addresses.get(peer.peerId);
      if (address === undefined) this.#untold.add(peer);
      else this.#tellJoined(peer, address);
    } else this.#report(peer);
  }

  #tellJoined(peer: Peer, clientAddr: string): void {
    this.#untold.delete(peer);
    const { tunnel, emit } = this.#options;
    emit({ type: 'peer', tunnel, peerId: peer.peerId, state: 'joined', clientAddr, reason: '' });
  }

  #onPath(peer: Peer, path: PeerPath): void {
    const { tunnel, emit } = this.#options;
    emit({ type: 'path', name: tunnel.name, peerId: peer.peerId, ...path });
    this.#report(peer);
  }

  #onGone(peer: Peer, reason: string): void {
    const { tunnel, emit } = this.#options;
    const clientAddr = this.#addresses.get(peer.peerId) ?? '';
    this.#addresses.delete(peer.peerId);
    // A subscriber that was never reported as joined is not reported as gone.
    if (this.#untold.delete(peer)) return;
    emit({ type: 'peer', tunnel, peerId: peer.peerId, state: 'gone', clientAddr, reason });
  }

  #report(peer: Peer, attempt?: DirectOutcome): void {
    const { path, reason, rttMs } = peer.path;
    const { directBytes } = peer.bytes;
    this.#reported.set(peer, directBytes);
    this.#options.tell({
      type: 'PeerReport',
      tunnel_id: this.#options.tunnel.tunnelId,
      peer_id: peer.peerId,
      path,
      reason,
      rtt_ms: rttMs,
      direct_bytes: directBytes,
      ...(attempt === undefined ? {} : { attempt }),
    });
  }
}
