// Publishing side: a session per subscriber, identified by the session id that the subscriber sends after it has proven the secret. The
// edge opens relay streams in any order; a subscriber that reconnects over another relay stream keeps its session.
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

/** Maximum number of relay streams in the handshake. Further relay streams are refused. */
const PEER_HANDSHAKES_MAX = 256;
/** Maximum number of sessions per publisher. An edge allows 100 peers unless its operator configures more. */
const PEER_SESSIONS_MAX = 4096;
/** How long a subscriber without a path is kept in case it reconnects. */
export const PEER_ABSENT_MS = 30_000;

/** A subscriber of a p2p tunnel as seen by its publisher. */
export interface Peer {
  /** Id of the subscriber assigned by the edge. Changes when the subscriber joins again. */
  readonly peerId: string;
  readonly path: PeerPath;
  readonly bytes: PeerBytes;
}

export interface PublisherHandlers {
  onStream(stream: MuxStream, head: StreamHead, peer: Peer): void;
  onDatagramStream(stream: DatagramStream, head: StreamHead, peer: Peer): void;
  /** Called when a peer has proven the secret, and again when it reconnects over another relay, possibly with a new peerId. */
  onJoined(peer: Peer, isNew: boolean): void;
  onPath(peer: Peer, path: PeerPath): void;
  /** Called when an attempt to connect to a subscriber directly has ended. */
  onAttempt(peer: Peer, outcome: DirectOutcome): void;
  onGone(peer: Peer, reason: string): void;
  /** Called when a relay stream failed for a reason shown to users. */
  onFailed(peerId: string, fault: Fault): void;
}

interface PeerEntry extends Peer {
  readonly sessionId: string;
  readonly session: PeerSession;
  peerId: string;
  /** Carrier of the newest relay to this subscriber. Messages from older relays are ignored. */
  relay: SealedCarrier | null;
  absent: Timer | null;
}

export class PeerPublisher {
  readonly #settings: PeerSettings;
  readonly #handlers: PublisherHandlers;
  /** Id of this program, so that subscribers notice when another program takes over. */
  readonly #program = randomBytes(16).toString('hex');
  /** Connected subscribers by their session id. */
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

  /** Accepts a relay stream that the edge opened for this subscriber. */
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
        // The peer identifies itself with its next message and belongs to no session before.
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

  /** Called when the edge has ended the join: direct connections end, too. Not called for a peer that only lost its connection. */
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
    // A join is for a single program, so a known peer id with another session id means that the earlier program has ended.
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
    // The publisher's onJoined must be called before the first onPath of the subscriber.
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

  /** Starts the timeout for a subscriber that has neither a relay nor a direct path. */
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
