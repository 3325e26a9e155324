// One relay stream: a subscriber's stream on one side, one to the publisher's client on the other, joined byte for byte. Nothing of it is read.
// The subscriber can send nothing before it is told that the stream is open, so nothing waits here.
import type { ByteReader, MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { RelayedStream } from '../tcp/relayed-stream.ts';
import type { JoinedPeer } from './joined-peer.ts';
import type { PeerRelays } from './peer-relays.ts';

const SUBSCRIBER_LEFT: StreamReason = { code: 'cancelled', text: 'the subscriber disconnected' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the publisher is not accepting connections right now' };

/** While it opens it reads the subscriber's stream itself: all there can be is its reset. */
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
      // Whoever offered the stream knows nothing of the lease.
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

  // ---- the subscriber's stream while it opens ----

  onData(): boolean {
    return true;
  }

  onDrain(): void {}

  onEnd(): void {}

  onReset(): void {
    this.leave(SUBSCRIBER_LEFT);
  }

  // ---- the two, joined ----

  override onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.joined.relayedBytes += bytes;
    super.onBytes(direction, bytes);
  }
}
