// A visitor of a udp tunnel: the lease, and the stream for its datagrams. A flow outlives its streams: after a carrier is lost, the next
// datagram opens another stream. A single object per flow receives all callbacks, so that an idle flow needs no closures and no timers.

import { BROKEN, type DatagramAnswer, type DatagramReader, type DatagramStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { type DropReason, type Flow } from '@tunnel/rules/flows';
import { hostPort, plainAddress } from '@tunnel/rules/net';
import { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { UdpPort } from './udp-port.ts';

/** Maximum datagrams of a new flow that wait for the policy decision. Further datagrams are dropped (reason `limit`). */
export const UDP_DECIDING_DATAGRAMS = 8;
/** Maximum bytes of a new UDP flow that wait for the policy decision. */
const UDP_DECIDING_BYTES = 16 * 1024;

export class UdpFlow implements DatagramAnswer, DatagramReader {
  readonly flow: Flow<UdpFlow>;
  readonly tunnel: Tunnel;
  readonly lease = new Lease();
  readonly #port: UdpPort;
  /** Datagrams that wait for the policy decision. Null after the flow is allowed. */
  #waiting: Buffer[] | null = null;
  #waitingBytes = 0;
  #stream: DatagramStream | null = null;
  /** Datagrams of the flow sent on a stream that the client has not answered yet. */
  #unansweredDatagrams = 0;
  #unansweredBytes = 0;
  #isServed = false;
  #isOver = false;

  constructor(flow: Flow<UdpFlow>, tunnel: Tunnel, port: UdpPort) {
    this.flow = flow;
    this.tunnel = tunnel;
    this.#port = port;
  }

  // ---- waiting for the policy decision ----

  holdBack(): void {
    this.#waiting = [];
  }

  /** Lets the UDP flow pass after the policy decision and sends the waiting datagrams. */
  letIn(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const bytes of waiting) this.send(bytes, 0, bytes.length);
  }

  #wait(bytes: Buffer, start: number, end: number, waiting: Buffer[]): void {
    const size = end - start;
    const isFull = waiting.length >= UDP_DECIDING_DATAGRAMS || this.#waitingBytes + size > UDP_DECIDING_BYTES;
    if (isFull) return this.#port.onDropped(this, 'limit', 1);
    this.#waitingBytes += size;
    waiting.push(bytes.subarray(start, end));
  }

  // ---- datagrams from the visitor ----

  /** Passes a datagram to the client, or counts it as dropped with a reason. */
  send(bytes: Buffer, start: number, end: number): void {
    if (this.#waiting !== null) return this.#wait(bytes, start, end, this.#waiting);
    // Congestion is checked before a new stream is opened: an overloaded client would open a socket for a datagram that is dropped.
    // Confirmed visitors are not affected by unconfirmed visitors.
    if (this.#stream === null && !this.flow.isConfirmed && !this.tunnel.upstream.takesFlows)
      return this.#port.onDropped(this, 'behind', 1);
    const stream = this.#stream ?? this.#open();
    const outcome = stream === null ? 'away' : stream.send(bytes, start, end);
    if (outcome !== 'sent') return this.#port.onDropped(this, outcome, 1);
    if (stream?.state === 'open') return this.#port.onPassed(this, 1, end - start);
    this.#unansweredDatagrams += 1;
    this.#unansweredBytes += end - start;
  }

  /** Ends the flow. `reason` is counted for datagrams that the client has not answered. */
  end(why: StreamReason, reason: DropReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const waited = this.#waiting?.length ?? 0;
    this.#waiting = null;
    if (waited > 0) this.#port.onDropped(this, reason, waited);
    this.#letGo(reason)?.reset(why);
  }

  // ---- stream to the client ----

  #open(): DatagramStream | null {
    const { upstream, tunnelId } = this.tunnel;
    const visitor = hostPort(plainAddress(this.flow.address), this.flow.port);
    const opened = upstream.openDatagrams({ tunnelId, visitor }, this);
    // If the carrier fails during the call, the flow's stream is closed already.
    if (opened === null || opened.state === 'closed') return null;
    this.#stream = opened;
    if (!this.#isServed) this.#port.onAsked(this);
    opened.read(this);
    return opened;
  }

  /** Detaches the flow from its stream. Unanswered datagrams are lost with the stream. */
  #letGo(reason: DropReason): DatagramStream | null {
    const stream = this.#stream;
    const unanswered = this.#unansweredDatagrams;
    this.#stream = null;
    this.#unansweredDatagrams = 0;
    this.#unansweredBytes = 0;
    if (unanswered > 0) this.#port.onDropped(this, reason, unanswered);
    if (!this.#isServed) this.#port.onUnasked(this);
    return stream;
  }

  onOpened(stream: DatagramStream): void {
    if (stream !== this.#stream || this.#isOver) return;
    const datagrams = this.#unansweredDatagrams;
    const bytes = this.#unansweredBytes;
    this.#unansweredDatagrams = 0;
    this.#unansweredBytes = 0;
    if (!this.#isServed) this.#port.onServed(this);
    this.#isServed = true;
    if (datagrams > 0) this.#port.onPassed(this, datagrams, bytes);
  }

  onRefused({ code }: StreamReason): void {
    if (this.#isOver) return;
    const isAway = code === 'carrier-lost' || code === 'shutting-down';
    this.#letGo(isAway ? 'away' : 'local');
    if (!isAway) this.#port.onRefused(this);
  }

  // ---- datagrams from the client ----

  onDatagram(bytes: Buffer, start: number, end: number): void {
    if (!this.#isOver) this.#port.onReply(this, bytes, start, end);
  }

  /** Called when the carrier is lost or the client closed the stream. The flow continues if the visitor sends another datagram. */
  onReset(): void {
    if (!this.#isOver) this.#letGo('away');
  }

  abandon(error: unknown, where: string): void {
    const stream = this.#stream;
    try {
      this.#port.onBroken(this, error, where);
    } finally {
      this.#isOver = true;
      this.#stream = null;
      stream?.reset(BROKEN);
    }
  }
}
