// A relay stream: a subscriber's stream joined byte for byte with a stream to the publisher's client. The bytes are not inspected. The
// subscriber cannot send before the stream is open, so nothing is buffered.
import type { ByteReader, MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { RelayedStream } from '../tcp/relayed-stream.ts';
import type { JoinedPeer } from './joined-peer.ts';
import type { PeerRelays } from './peer-relays.ts';

const SUBSCRIBER_LEFT: StreamReason = { code: 'cancelled', text: 'the subscriber disconnected' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the publisher is not accepting connections right now' };

/**
 * Relayed stream between a p2p subscriber and its publisher. While the publisher's stream is opening, reads the subscriber's stream
 * itself; only a reset can arrive.
 */
export class PeerRelay extends RelayedStream implements ByteReader {
  readonly lease: Lease;
  readonly joined: JoinedPeer;
  protected readonly near: MuxStream;
  protected readonly owner: PeerRelays;

  constructor(subscriber: MuxStream, joined: JoinedPeer, publisher: Tunnel, lease: Lease, owner: PeerRelays) {
    super(publisher);
    this.near = subscriber;
    this.joined = joined;
    this.lease = lease;
    this.owner = owner;
  }

  start(): void {
    try {
      this.#open();
    } catch (error) {
      // The error is handled here, because the caller does not know the lease.
      this.abandon(error, 'relay.open');
    }
  }

  #open(): void {
    const { clientAddr, peer } = this.joined;
    const head = { tunnelId: this.member.tunnelId, visitor: clientAddr, peerId: peer.peerId };
    this.near.read(this);
    if (!this.ask(this.member, head)) this.onRefused(NO_CARRIER);
  }

  protected override onServed(): void {
    this.near.accept();
  }

  protected override onUnserved(reason: StreamReason): void {
    this.owner.onRefused(this, reason);
    this.near.refuse(reason);
    this.finish();
  }

  protected override onOver(): void {
    this.owner.onOver(this);
  }

  // ---- subscriber's stream while opening ----

  onData(): boolean {
    return true;
  }

  onDrain(): void {}

  onEnd(): void {}

  onReset(): void {
    this.leave(SUBSCRIBER_LEFT);
  }

  // ---- joined streams ----

  override onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.joined.relayedBytes += bytes;
    super.onBytes(direction, bytes);
  }
}
