// One relay stream: a subscriber's stream on one side, one to the publisher's client on the other, joined byte for byte. Nothing of it is read.
// The subscriber can send nothing before it is told that the stream is open, so nothing waits here.
import {
  BROKEN,
  type ByteReader,
  type MuxStream,
  type OpenAnswer,
  type PendingStream,
  type ReportInternalError,
  type Splice,
  type SpliceHandlers,
  splice,
} from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { JoinedPeer } from './joined-peer.ts';

export interface PeerRelayOwner {
  onBytes(toClient: number, toVisitor: number): void;
  /** The publisher's client did not take it. onOver follows. */
  onRefused(relay: PeerRelay, reason: StreamReason): void;
  /** Once; nothing follows. */
  onOver(relay: PeerRelay): void;
  readonly report: ReportInternalError;
}

const SUBSCRIBER_LEFT: StreamReason = { code: 'cancelled', text: 'the subscriber left' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the publisher takes no connections now' };

/** While it opens it reads the subscriber's stream itself: all there can be is its reset. */
export class PeerRelay implements OpenAnswer, SpliceHandlers, ByteReader {
  readonly lease: Lease;
  readonly joined: JoinedPeer;
  readonly #subscriber: MuxStream;
  readonly #publisher: Tunnel;
  readonly #owner: PeerRelayOwner;
  #state: 'opening' | 'joined' | 'over' = 'opening';
  #opening: PendingStream | null = null;
  #splice: Splice | null = null;

  constructor(subscriber: MuxStream, joined: JoinedPeer, publisher: Tunnel, lease: Lease, owner: PeerRelayOwner) {
    this.#subscriber = subscriber;
    this.joined = joined;
    this.#publisher = publisher;
    this.lease = lease;
    this.#owner = owner;
  }

  start(): void {
    try {
      this.#open();
    } catch (error) {
      // Whoever offered the stream knows nothing of the lease.
      this.abandon(error, 'relay.open');
    }
  }

  #open(): void {
    const { upstream, tunnelId } = this.#publisher;
    const { clientAddr, peer } = this.joined;
    this.#subscriber.read(this);
    const opening = upstream.open({ tunnelId, visitor: clientAddr, peerId: peer.peerId }, this);
    // A carrier that breaks under this very stream answers within the call.
    if (this.#state !== 'opening') return;
    if (opening === null) this.onRefused(NO_CARRIER);
    else this.#opening = opening;
  }

  /** Whatever it is doing, it stops, and both sides see a reset. */
  reset(reason: StreamReason): void {
    if (this.#state === 'joined') {
      this.#splice?.reset(reason);
      return;
    }
    if (this.#state === 'over') return;
    this.#opening?.reset(reason);
    this.#subscriber.reset(reason);
    this.#finish();
  }

  // ---- the publisher's answer ----

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    this.#subscriber.accept();
    const joined = splice(this.#subscriber, stream, this);
    if (this.#state === 'joined') this.#splice = joined;
  }

  onRefused(reason: StreamReason): void {
    if (this.#state !== 'opening') return;
    this.#owner.onRefused(this, reason);
    this.#subscriber.refuse(reason);
    this.#finish();
  }

  // ---- the subscriber's stream while it opens ----

  onData(): boolean {
    return true;
  }

  onDrain(): void {}

  onEnd(): void {}

  onReset(): void {
    this.#opening?.reset(SUBSCRIBER_LEFT);
    this.#finish();
  }

  // ---- the two, joined ----

  onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.joined.relayedBytes += bytes;
    this.#publisher.counters.addBytes(bytes);
    if (direction === 'a-to-b') this.#owner.onBytes(bytes, 0);
    else this.#owner.onBytes(0, bytes);
  }

  onDone(): void {
    this.#finish();
  }

  /** Bytes are cut off, whichever side they came from: half of them would look whole. */
  abandon(error: unknown, where: string): void {
    const [opening, joined] = [this.#opening, this.#splice];
    try {
      this.#owner.report(error, where);
      opening?.reset(BROKEN);
      this.#subscriber.reset(BROKEN);
    } finally {
      this.#finish();
      joined?.reset(BROKEN);
    }
  }

  #finish(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
    this.#owner.onOver(this);
  }
}
