// One visitor of a udp tunnel as the ingress serves it: its lease, and the stream that carries its datagrams. A flow outlives its streams:
// one that is lost with its carrier is followed by another with the next datagram.
// One object per flow takes all callbacks, so that an idle flow costs no closures and no timers.

import { BROKEN, type DatagramAnswer, type DatagramReader, type DatagramStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { type DropReason, type Flow } from '@tunnel/rules/flows';
import { hostPort, plainAddress } from '@tunnel/rules/net';
import { Lease } from '../../routing/balancer.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { UdpPort } from './udp-port.ts';

/** datagrams of a new flow that wait while it is decided whether it may come; further ones are dropped (`limit`) */
export const UDP_DECIDING_DATAGRAMS = 8;
/** the same by their size */
const UDP_DECIDING_BYTES = 16 * 1024;

export class UdpFlow implements DatagramAnswer, DatagramReader {
  readonly flow: Flow<UdpFlow>;
  readonly tunnel: Tunnel;
  readonly lease = new Lease();
  readonly #port: UdpPort;
  /** What came while it is not decided yet whether it may come at all; null: it may. */
  #waiting: Buffer[] | null = null;
  #waitingBytes = 0;
  #stream: DatagramStream | null = null;
  /** Sent on a stream that the client has not answered yet. */
  #unansweredDatagrams = 0;
  #unansweredBytes = 0;
  #isServed = false;
  #isOver = false;

  constructor(flow: Flow<UdpFlow>, tunnel: Tunnel, port: UdpPort) {
    this.flow = flow;
    this.tunnel = tunnel;
    this.#port = port;
  }

  // ---- while it is decided ----

  holdBack(): void {
    this.#waiting = [];
  }

  /** It may come: what waited goes. */
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

  // ---- from the visitor ----

  /** It is passed, or counted under the reason why not. */
  send(bytes: Buffer, start: number, end: number): void {
    if (this.#waiting !== null) return this.#wait(bytes, start, end, this.#waiting);
    // Asked before it is opened anew: a client that is behind would open a socket for a datagram that does not come. One that
    // is proven to be there is not kept out by those who are not.
    if (this.#stream === null && !this.flow.isConfirmed && !this.tunnel.upstream.takesFlows)
      return this.#port.onDropped(this, 'behind', 1);
    const stream = this.#stream ?? this.#open();
    const outcome = stream === null ? 'away' : stream.send(bytes, start, end);
    if (outcome !== 'sent') return this.#port.onDropped(this, outcome, 1);
    if (stream?.state === 'open') return this.#port.onPassed(this, 1, end - start);
    this.#unansweredDatagrams += 1;
    this.#unansweredBytes += end - start;
  }

  /** `reason`: what becomes of datagrams that nobody has answered for. */
  end(why: StreamReason, reason: DropReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const waited = this.#waiting?.length ?? 0;
    this.#waiting = null;
    if (waited > 0) this.#port.onDropped(this, reason, waited);
    this.#letGo(reason)?.reset(why);
  }

  // ---- its stream ----

  #open(): DatagramStream | null {
    const { upstream, tunnelId } = this.tunnel;
    const visitor = hostPort(plainAddress(this.flow.address), this.flow.port);
    const opened = upstream.openDatagrams({ tunnelId, visitor }, this);
    // A carrier that breaks under this very stream answers within the call.
    if (opened === null || opened.state === 'closed') return null;
    this.#stream = opened;
    if (!this.#isServed) this.#port.onAsked(this);
    opened.read(this);
    return opened;
  }

  /** What the client has not answered for is lost with the stream. */
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

  // ---- from the client ----

  onDatagram(bytes: Buffer, start: number, end: number): void {
    if (!this.#isOver) this.#port.onReply(this, bytes, start, end);
  }

  /** Its carrier is lost, or the client let go: if the visitor goes on, so does the flow. */
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
