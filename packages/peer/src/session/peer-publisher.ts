// The side that publishes: a session for each subscriber, found by what the subscriber says once it has proven the secret. Relay streams come
// from the edge in any order, and a subscriber that comes back by another one is still the same.
import { randomBytes } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { ByteDuplex, DatagramStream, MuxStream } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { Timer } from '@tunnel/runtime';
import type { PeerMessage } from '../direct/peer-messages.ts';
import type { DirectOutcome } from '../direct/relay-reason.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';
import { type PeerBytes, type PeerPath, PeerSession, type PeerSettings } from './peer-session.ts';
import { relayCarrier } from './relay-handshake.ts';

/** relay streams that have not proven the secret yet; over it new ones are refused */
const PEER_HANDSHAKES_MAX = 256;
/** of one publisher; an edge allows 100 peers unless its operator says more */
const PEER_SESSIONS_MAX = 4096;
/** a peer without any path is kept for its return */
export const PEER_ABSENT_MS = 30_000;

/** A subscriber, as its publisher sees it. */
export interface Peer {
  /** The edge's name for it; another one when it has joined anew. */
  readonly peerId: string;
  readonly path: PeerPath;
  readonly bytes: PeerBytes;
}

export interface PublisherHandlers {
  onStream(stream: MuxStream, head: StreamHead, peer: Peer): void;
  onDatagramStream(stream: DatagramStream, head: StreamHead, peer: Peer): void;
  /** It has proven the secret; again when it came back by another relay, perhaps with another peerId. */
  onJoined(peer: Peer, isNew: boolean): void;
  onPath(peer: Peer, path: PeerPath): void;
  /** A try to go direct has ended. */
  onAttempt(peer: Peer, outcome: DirectOutcome): void;
  onGone(peer: Peer, reason: string): void;
  /** A relay stream that came to nothing, for a reason that people are told. */
  onFailed(peerId: string, fault: Fault): void;
}

interface PeerEntry extends Peer {
  readonly sessionId: string;
  readonly session: PeerSession;
  peerId: string;
  /** The newest relay; words on an older one are stale. */
  relay: SealedCarrier | null;
  absent: Timer | null;
}

export class PeerPublisher {
  readonly #settings: PeerSettings;
  readonly #handlers: PublisherHandlers;
  /** This program: subscribers notice when another one has taken its place. */
  readonly #program = randomBytes(16).toString('hex');
  /** By what the subscriber says of itself. */
  readonly #peers = new Map<string, PeerEntry>();
  readonly #unproven = new Set<SealedCarrier>();
  #closed = false;

  constructor(settings: PeerSettings, handlers: PublisherHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
  }

  get peers(): readonly Peer[] {
    return [...this.#peers.values()];
  }

  /** A relay stream that the edge has opened for this peer. */
  acceptRelay(duplex: ByteDuplex, peerId: string): void {
    if (this.#closed || this.#unproven.size >= PEER_HANDSHAKES_MAX) {
      duplex.reset({ code: 'limit', text: 'too many peers are authenticating' });
      return;
    }
    let entry: PeerEntry | null = null;
    const carrier = relayCarrier(
      duplex,
      'responder',
      this.#settings,
      {
        // It says next who it is; until then it is nobody's.
        onProven: () => {},
        onMessage: (from, message) => {
          if (entry !== null) this.#onMessage(entry, from, message);
          else if (message.type === 'hello') entry = this.#join(from, message.session, peerId);
          else from.destroy('unexpected handshake message');
        },
        onFailed: (failed, failure) => {
          this.#unproven.delete(failed);
          if (typeof failure !== 'string' && !this.#closed) this.#handlers.onFailed(peerId, failure);
        },
      },
      this.#program,
    );
    this.#unproven.add(carrier);
    carrier.begin();
  }

  /** The edge has ended this join: what runs direct ends, too. Not for a peer that is merely lost. */
  dismiss(peerId: string, reason: string): void {
    for (const entry of this.#peers.values()) if (entry.peerId === peerId) this.#end(entry, reason);
  }

  close(reason: StreamReason): void {
    this.#closed = true;
    for (const carrier of [...this.#unproven]) carrier.destroy(reason.text);
    for (const entry of [...this.#peers.values()]) this.#end(entry, reason.text);
  }

  #join(carrier: SealedCarrier, sessionId: string, peerId: string): PeerEntry | null {
    this.#unproven.delete(carrier);
    const known = this.#peers.get(sessionId);
    // The edge counts joins; one join is one program, so the one before has ended.
    for (const other of [...this.#peers.values()]) {
      if (other.peerId === peerId && other.sessionId !== sessionId) this.#end(other, 'left');
    }
    if (known === undefined && this.#peers.size >= PEER_SESSIONS_MAX) {
      carrier.destroy('too many peers');
      return null;
    }
    const entry = known ?? this.#newPeer(sessionId, peerId);
    entry.peerId = peerId;
    entry.relay = carrier;
    entry.absent?.cancel();
    entry.absent = null;
    // Known before it can be told of a path.
    this.#handlers.onJoined(entry, known === undefined);
    entry.session.attachRelay(carrier);
    return entry;
  }

  #newPeer(sessionId: string, peerId: string): PeerEntry {
    const session = new PeerSession('publisher', this.#settings, {
      onStream: (stream, head) => this.#handlers.onStream(stream, head, entry),
      onDatagramStream: (stream, head) => this.#handlers.onDatagramStream(stream, head, entry),
      onPath: (path) => {
        this.#handlers.onPath(entry, path);
        this.#watch(entry);
      },
      onAttempt: (outcome) => this.#handlers.onAttempt(entry, outcome),
      onRelayLost: () => this.#watch(entry),
    });
    const entry: PeerEntry = {
      sessionId,
      session,
      peerId,
      relay: null,
      absent: null,
      get path() {
        return session.path;
      },
      get bytes() {
        return session.bytes;
      },
    };
    this.#peers.set(sessionId, entry);
    return entry;
  }

  #onMessage(entry: PeerEntry, carrier: SealedCarrier, message: PeerMessage): void {
    if (carrier !== entry.relay) return;
    if (message.type === 'bye') this.#end(entry, 'left');
    else entry.session.onMessage(message);
  }

  /** A peer without any way is kept a while for its return. */
  #watch(entry: PeerEntry): void {
    if (entry.session.isConnected || entry.absent !== null || this.#closed) return;
    entry.absent = this.#settings.clock.setTimeout(() => {
      try {
        if (!entry.session.isConnected) this.#end(entry, 'lost');
        else entry.absent = null;
      } catch (error) {
        this.#settings.report(error, 'peer.absent');
      }
    }, PEER_ABSENT_MS);
  }

  #end(entry: PeerEntry, reason: string): void {
    if (!this.#peers.delete(entry.sessionId)) return;
    entry.absent?.cancel();
    entry.session.close({ code: 'cancelled', text: reason });
    this.#handlers.onGone(entry, reason);
  }
}
