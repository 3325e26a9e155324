// Connecting side: a session with the program that currently publishes the name. The owner attaches relay streams; the subscriber opens
// streams over any available path and reports the path.
import { randomBytes } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { ByteDuplex, DatagramAnswer, DatagramStream, OpenAnswer, PendingStream } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { encodeMessage, type HandshakeHello, type PeerMessage } from '../direct/peer-messages.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';
import { type PeerBytes, type PeerPath, PeerSession, type PeerSettings } from './peer-session.ts';
import { relayCarrier } from './relay-handshake.ts';

export interface SubscriberHandlers {
  /** Called when the publisher is proven over a relay, for the first and every later relay. */
  onReady(): void;
  onPath(path: PeerPath): void;
  /** Called when another relay stream should be opened and attached. A direct path continues meanwhile. */
  onRelayLost(reason: string): void;
  /**
   * Called when the relay stream failed for a reason shown to users: `P2P_PROOF_FAILED` (retry after 30 s) or `P2P_SERVICE_MISMATCH` (no
   * retry).
   */
  onFailed(fault: Fault): void;
}

export class PeerSubscriber {
  readonly #settings: PeerSettings;
  readonly #handlers: SubscriberHandlers;
  readonly #session: PeerSession;
  /** Session id of this subscriber, sent to the publisher. */
  readonly #id = randomBytes(16).toString('hex');
  /** Program id of the publisher. A different id means that another program took over. */
  #program: string | null = null;
  /** Carrier of the newest relay to the publisher. Messages from older relays are ignored. */
  #relay: SealedCarrier | null = null;
  #closed = false;

  constructor(settings: PeerSettings, handlers: SubscriberHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#session = new PeerSession('subscriber', settings, {
      onPath: (path) => handlers.onPath(path),
      onRelayLost: (reason) => handlers.onRelayLost(reason),
    });
  }

  get path(): PeerPath {
    return this.#session.path;
  }

  get bytes(): PeerBytes {
    return this.#session.bytes;
  }

  /** True if any path to the publisher exists. */
  get isConnected(): boolean {
    return this.#session.isConnected;
  }

  /** Attaches a relay stream joined by the edge. Failures are reported with either onFailed or onRelayLost. */
  attachRelay(duplex: ByteDuplex): void {
    const before = this.#relay;
    this.#relay = relayCarrier(duplex, 'initiator', this.#settings, {
      onProven: (carrier, hello) => this.#onProven(carrier, hello),
      onMessage: (carrier, message) => this.#onMessage(carrier, message),
      onFailed: (carrier, failure) => {
        if (this.#closed || this.#relay !== carrier) return;
        if (typeof failure === 'string') this.#handlers.onRelayLost(failure);
        else this.#handlers.onFailed(failure);
      },
    });
    // An earlier relay that has not completed its handshake yet is dropped.
    if (before?.isProven === false) before.destroy('replaced by another relay');
    this.#relay.begin();
  }

  /** Opens a stream to the publisher, like MuxSession.open: waits a moment if no path exists. */
  open(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    return this.#session.open(head, answer);
  }

  openDatagrams(head: StreamHead, answer: DatagramAnswer): DatagramStream | null {
    return this.#session.openDatagrams(head, answer);
  }

  /**
   * Called when the edge has ended the join (permission revoked, peer dismissed): direct connections end, too. Another relay can be
   * attached later.
   */
  disconnect(reason: string): void {
    this.#program = null;
    this.#session.disconnect(reason);
  }

  close(reason: StreamReason): void {
    this.#closed = true;
    this.#session.close(reason);
  }

  #onProven(carrier: SealedCarrier, { program = '' }: HandshakeHello): void {
    if (this.#closed) return carrier.destroy('closed');
    // Another program publishes now. Connections to the old program are closed, so that users are never connected to both.
    if (this.#program !== null && this.#program !== program) this.#session.disconnect('the publisher was replaced');
    this.#program = program;
    carrier.sendMessage(encodeMessage({ type: 'hello', session: this.#id }));
    this.#session.attachRelay(carrier);
    this.#handlers.onReady();
  }

  #onMessage(carrier: SealedCarrier, message: PeerMessage): void {
    if (carrier !== this.#relay) return;
    if (message.type === 'bye') this.disconnect(message.reason);
    else this.#session.onMessage(message);
  }
}
