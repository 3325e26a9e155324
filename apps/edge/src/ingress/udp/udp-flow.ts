// One visitor of a udp tunnel: its lease, the stream that carries its datagrams, and what has passed. A flow outlives its streams: one
// that is lost with its carrier is followed by another with the next datagram.
// One object per flow takes all callbacks, so that an idle flow costs no closures and no timers.
import type { DropReason } from '@tunnel/contract';
import { BROKEN, type DatagramAnswer, type DatagramReader, type DatagramStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';

export interface UdpFlowOwner {
  /** The client has a local socket for it: once a flow. */
  onServed(flow: UdpFlow): void;
  /** From the visitor, and passed. */
  onPassed(flow: UdpFlow, datagrams: number, bytes: number): void;
  onDropped(flow: UdpFlow, reason: DropReason, datagrams: number): void;
  /** The memory is borrowed for the call. */
  onReply(flow: UdpFlow, bytes: Buffer, start: number, end: number): void;
  /** The client does not take it. */
  onRefused(flow: UdpFlow): void;
  /** Something of ours threw. */
  onBroken(flow: UdpFlow, error: unknown, where: string): void;
}

const ELSEWHERE: StreamReason = { code: 'cancelled', text: 'the flow goes on another connection of the client' };

export class UdpFlow implements DatagramAnswer, DatagramReader {
  /** As the socket has it: that of an IPv4 visitor may be mapped. */
  readonly address: string;
  readonly port: number;
  /** host:port, as people and the client are told. */
  readonly visitor: string;
  readonly lease: Lease;
  readonly tunnel: Tunnel;
  /** Milliseconds since the epoch. */
  readonly since: number;
  datagramsIn = 0;
  datagramsOut = 0;
  bytesIn = 0;
  bytesOut = 0;
  dropped = 0;
  readonly #owner: UdpFlowOwner;
  #stream: DatagramStream | null = null;
  /** What the stream was opened on. */
  #connection: object | null = null;
  /** Sent on a stream that the client has not answered yet. */
  #unansweredDatagrams = 0;
  #unansweredBytes = 0;
  #isServed = false;
  #isOver = false;

  constructor(
    given: Pick<UdpFlow, 'address' | 'port' | 'visitor' | 'lease' | 'tunnel' | 'since'>,
    owner: UdpFlowOwner,
  ) {
    this.address = given.address;
    this.port = given.port;
    this.visitor = given.visitor;
    this.lease = given.lease;
    this.tunnel = given.tunnel;
    this.since = given.since;
    this.#owner = owner;
  }

  /** From the visitor: it is passed, or counted under the reason why not. */
  send(bytes: Buffer, start: number, end: number): void {
    const stream = this.#stream ?? this.#open();
    const outcome = stream?.send(bytes, start, end) ?? 'away';
    if (outcome === 'sent') return this.#sent(stream as DatagramStream, end - start);
    // Its client has come back on another connection, and the old one is gone or stands still.
    if ((outcome === 'behind' || outcome === 'away') && stream !== null && this.#isLeftBehind()) {
      const next = this.#open();
      const again = next?.send(bytes, start, end) ?? outcome;
      if (next !== null && again === 'sent') return this.#sent(next, end - start);
    }
    this.#owner.onDropped(this, outcome, 1);
  }

  /** Whoever ends it gives its lease back. */
  end(reason: StreamReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#letGo('away')?.reset(reason);
  }

  #sent(stream: DatagramStream, bytes: number): void {
    if (stream.state === 'open') return this.#owner.onPassed(this, 1, bytes);
    this.#unansweredDatagrams += 1;
    this.#unansweredBytes += bytes;
  }

  // ---- its stream ----

  #isLeftBehind(): boolean {
    const { connection } = this.tunnel.upstream;
    return !this.#isOver && connection !== null && connection !== this.#connection;
  }

  #open(): DatagramStream | null {
    const { upstream, tunnelId } = this.tunnel;
    // First: an answer does not say which stream it is for.
    this.#letGo('away')?.reset(ELSEWHERE);
    const opened = upstream.openDatagrams({ tunnelId, visitor: this.visitor }, this);
    // A carrier that breaks under this very stream answers within the call.
    if (opened === null || opened.state === 'closed') return null;
    this.#stream = opened;
    this.#connection = upstream.connection;
    opened.read(this);
    return opened;
  }

  /** What the client has not answered for is lost with the stream. */
  #letGo(reason: DropReason): DatagramStream | null {
    const [stream, unanswered] = [this.#stream, this.#unansweredDatagrams];
    this.#stream = null;
    this.#connection = null;
    this.#unansweredDatagrams = 0;
    this.#unansweredBytes = 0;
    if (unanswered > 0) this.#owner.onDropped(this, reason, unanswered);
    return stream;
  }

  onOpened(stream: DatagramStream): void {
    if (stream !== this.#stream || this.#isOver) return;
    const [datagrams, bytes] = [this.#unansweredDatagrams, this.#unansweredBytes];
    this.#unansweredDatagrams = 0;
    this.#unansweredBytes = 0;
    if (!this.#isServed) this.#owner.onServed(this);
    this.#isServed = true;
    if (datagrams > 0) this.#owner.onPassed(this, datagrams, bytes);
  }

  onRefused(reason: StreamReason): void {
    if (this.#isOver) return;
    const isLost = reason.code === 'carrier-lost' || reason.code === 'shutting-down';
    this.#letGo(isLost ? 'away' : 'local');
    if (!isLost) this.#owner.onRefused(this);
  }

  // ---- from the client ----

  onDatagram(bytes: Buffer, start: number, end: number): void {
    if (!this.#isOver) this.#owner.onReply(this, bytes, start, end);
  }

  /** Its carrier is lost, or the client let go: if the visitor goes on, so does the flow. */
  onReset(): void {
    if (!this.#isOver) this.#letGo('away');
  }

  abandon(error: unknown, where: string): void {
    const stream = this.#stream;
    try {
      this.#owner.onBroken(this, error, where);
    } finally {
      this.#isOver = true;
      this.#stream = null;
      stream?.reset(BROKEN);
    }
  }
}
