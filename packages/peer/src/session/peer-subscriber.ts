// The side that connects: one session with whichever program publishes the name. Its owner brings relay streams, one after another; it opens
// streams over whatever way there is, and says where they go.
import { randomBytes } from 'node:crypto';
import type { Fault } from '@tunnel/errors';
import type { ByteDuplex, DatagramAnswer, DatagramStream, OpenAnswer, PendingStream } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { encodeMessage, type HandshakeHello, type PeerMessage } from '../direct/peer-messages.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';
import { type PeerBytes, type PeerPath, PeerSession, type PeerSettings } from './peer-session.ts';
import { relayCarrier } from './relay-handshake.ts';

export interface SubscriberHandlers {
  /** The publisher is proven over a relay; the first time, and after each relay that came later. */
  onReady(): void;
  onPath(path: PeerPath): void;
  /** Open another relay stream and attach it; a direct path goes on meanwhile. */
  onRelayLost(reason: string): void;
  /** The relay stream is over, for a reason that people are told: `P2P_PROOF_FAILED` (try again after 30 s), `P2P_SERVICE_MISMATCH` (never). */
  onFailed(fault: Fault): void;
}

export class PeerSubscriber {
  readonly #settings: PeerSettings;
  readonly #handlers: SubscriberHandlers;
  readonly #session: PeerSession;
  /** This program, to the publisher. */
  readonly #id = randomBytes(16).toString('hex');
  /** The publisher's program; another one is another publisher. */
  #program: string | null = null;
  /** The newest relay; words on an older one are stale. */
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

  /** Whether there is any way to the publisher now. */
  get isConnected(): boolean {
    return this.#session.isConnected;
  }

  /** A relay stream that the edge has joined. Of those that fail either onFailed or onRelayLost is told. */
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
    // One that has proven nothing yet will not be waited for.
    if (before?.isProven === false) before.destroy('replaced by another relay');
    this.#relay.begin();
  }

  /** As MuxSession.open: it waits a little while there is no way. */
  open(head: StreamHead, answer: OpenAnswer): PendingStream | null {
    return this.#session.open(head, answer);
  }

  openDatagrams(head: StreamHead, answer: DatagramAnswer): DatagramStream | null {
    return this.#session.openDatagrams(head, answer);
  }

  /** The edge has ended the join (permission, dismissal): direct connections end, too. Another relay may be attached later. */
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
    // Another program publishes now: what runs to the old one ends, so that nobody is joined to both.
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
