// One visitor of a udp tunnel: the visitor's datagram stream on one side, and a separate socket connected to the local service on the
// other. The separate socket assigns every response to its visitor, and the kernel reports a closed port.
import { createSocket, type Socket } from 'node:dgram';
import {
  askForReceiveBuffer,
  BROKEN,
  type DatagramReader,
  DatagramSender,
  type DatagramStream,
  lookupAtOnce,
  type ReportInternalError,
  type Running,
  receiveDatagrams,
} from '@tunnel/mux';
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import type { ListNode } from '@tunnel/rules/collections';
import { CLIENT_LIMITS } from '../limits.ts';
import { codeOf, reasonOf } from '../network/dial-faults.ts';
import type { LocalAddress } from './local-addresses.ts';
import type { SendMemory } from './open-flows.ts';
import type { DropReason } from './traffic.ts';

export interface FlowOrder {
  readonly stream: DatagramStream;
  readonly address: LocalAddress;
  readonly port: number;
  /** Header to send before the payload of a flow's first datagram. Null without a header. */
  readonly header: Uint8Array | null;
  /** Send buffer for datagrams, shared by all flows of a client. */
  readonly memory: SendMemory;
}

export interface FlowHandlers {
  /** Called when datagrams of the flow were dropped. `in` means from the visitor to the service. */
  onDropped(direction: 'in' | 'out', reason: DropReason, datagrams: number): void;
  /** Called when the service is not reachable, or when the system rejects a datagram. The flow continues. */
  onLocalError(error: unknown): void;
  /** Called when the address has never responded. Returns true if the visitor's next flow can try another address. */
  mayBeElsewhere(address: LocalAddress): boolean;
  /** Called exactly once when the UDP flow has ended for any reason. */
  onDone(flow: LocalFlow): void;
  readonly report: ReportInternalError;
}

const DATAGRAM_MAX_BYTES = WIRE_LIMITS.DATAGRAM_MAX_BYTES;
/** Error codes of a system without free sockets or ports for a flow. */
const OUT_OF_SOCKETS = /^(EMFILE|ENFILE|ENOBUFS|ENOMEM|EADDRINUSE)$/;
/** Error code which reports that the service refused an earlier datagram. Sent once per datagram. */
const REFUSED = 'ECONNREFUSED';

export class LocalFlow implements DatagramReader {
  amongRunning: ListNode<Running> | null = null;
  /** Payload bytes forwarded in this flow, from the visitor to the service and back. */
  bytesAToB = 0;
  bytesBToA = 0;
  /** True if the flow had a datagram since the last silentFor(), so that no clock is read per datagram. */
  #isActive = true;
  #lastActiveAt: number;
  #state: 'connecting' | 'open' | 'closed' = 'connecting';
  #isAnswered = false;
  #header: Uint8Array | null;
  #hasBacklog = false;
  readonly #order: FlowOrder;
  readonly #handlers: FlowHandlers;
  readonly #socket: Socket;
  readonly #sender: DatagramSender;

  constructor(order: FlowOrder, handlers: FlowHandlers, now: number) {
    this.#order = order;
    this.#handlers = handlers;
    this.#header = order.header;
    this.#lastActiveAt = now;
    this.#socket = createSocket({ type: order.address.family === 6 ? 'udp6' : 'udp4', lookup: lookupAtOnce });
    this.#sender = new DatagramSender(this.#socket, (error) => this.#onNotSent(error));
    receiveDatagrams(this.#socket, this, 'flow', (bytes) => this.#onMessage(bytes));
    this.#socket.on('error', (error) => this.#onError(error));
  }

  /** Connects the socket and then accepts the stream. Until then the stream buffers datagrams. */
  connect(): void {
    const { address, port } = this.#order;
    this.#socket.connect(port, address.address, ((error?: Error) => this.#onConnected(error)) as () => void);
  }

  /** Returns the milliseconds since the last datagram, with the precision of the interval between calls. */
  silentFor(now: number): number {
    if (this.#isActive) {
      this.#isActive = false;
      this.#lastActiveAt = now;
    }
    return now - this.#lastActiveAt;
  }

  /** Ends the UDP flow from this side and notifies the edge. */
  end(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    this.#order.stream.reset(reason);
    this.#close();
  }

  // ---- from the visitor ----

  onDatagram(bytes: Buffer, start: number, end: number): void {
    if (this.#state !== 'open') return;
    this.#isActive = true;
    const header = this.#header;
    const headerBytes = header === null ? 0 : header.length;
    const length = headerBytes + end - start;
    if (length > DATAGRAM_MAX_BYTES) return this.#handlers.onDropped('in', 'too-large', 1);
    if (this.#hasBacklog && !this.#takesMore()) return this.#handlers.onDropped('in', 'local', 1);
    // Copies of queued datagrams have the exact length, so that the backlog uses no more memory than it counts.
    const copy = this.#hasBacklog ? Buffer.allocUnsafeSlow(length) : this.#order.memory.take();
    if (header !== null) {
      copy.set(header, 0);
      this.#header = null;
    }
    bytes.copy(copy, headerBytes, start, end);
    const isFree = this.#sender.send(copy.subarray(0, length));
    this.bytesAToB += end - start;
    if (isFree) return;
    if (!this.#hasBacklog) this.#order.memory.leave();
    this.#hasBacklog = true;
  }

  /** Checks whether the kernel can queue more. The backlog is kept short, because late datagrams are worse than lost datagrams. */
  #takesMore(): boolean {
    const queued = this.#socket.getSendQueueSize();
    this.#hasBacklog = queued > 0;
    return queued <= CLIENT_LIMITS.FLOW_BACKLOG_MAX_BYTES;
  }

  onReset(): void {
    this.#close();
  }

  abandon(error: unknown, where: string): void {
    this.#handlers.report(error, where);
    this.end(BROKEN);
  }

  // ---- from the local service ----

  #onMessage(bytes: Buffer): void {
    if (this.#state !== 'open') return;
    this.#isActive = true;
    this.#isAnswered = true;
    const outcome = this.#order.stream.send(bytes, 0, bytes.length);
    if (outcome === 'sent') this.bytesBToA += bytes.length;
    else this.#handlers.onDropped('out', outcome, 1);
  }

  /** Counts a datagram rejected by the system: too long for one packet, or replaced by the error of an earlier datagram. */
  #onNotSent(error: Error): void {
    if (this.#state !== 'open') return;
    try {
      this.#handlers.onDropped('in', codeOf(error) === 'EMSGSIZE' ? 'too-large' : 'local', 1);
    } catch (thrown) {
      return this.abandon(thrown, 'flow.not-sent');
    }
    this.#onError(error);
  }

  #onConnected(error?: Error): void {
    if (error !== undefined) return this.#onError(error);
    if (this.#state !== 'connecting') return;
    try {
      const { stream } = this.#order;
      // The visitor's flow ended while the local UDP socket was being created.
      if (stream.state !== 'offered') return this.#close();
      this.#state = 'open';
      askForReceiveBuffer(this.#socket, CLIENT_LIMITS.FLOW_RECEIVE_BUFFER_BYTES);
      stream.accept();
      stream.read(this);
      if (stream.droppedBeforeRead > 0) this.#handlers.onDropped('in', 'local', stream.droppedBeforeRead);
    } catch (thrown) {
      this.abandon(thrown, 'flow.connected');
    }
  }

  #onError(error: Error): void {
    try {
      const { stream, address } = this.#order;
      if (this.#state === 'closed') return;
      if (this.#state === 'connecting') {
        this.#handlers.onLocalError(error);
        const code = OUT_OF_SOCKETS.test(codeOf(error)) ? 'limit' : 'dial-refused';
        stream.refuse({ code, text: reasonOf(error) });
        return this.#close();
      }
      if (codeOf(error) === REFUSED) this.#handlers.onDropped('in', 'local', 1);
      this.#handlers.onLocalError(error);
      if (!this.#isAnswered && this.#handlers.mayBeElsewhere(address)) {
        this.end({ code: 'dial-refused', text: reasonOf(error) });
      }
    } catch (thrown) {
      this.abandon(thrown, 'flow.error');
    }
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#socket.close();
    this.#handlers.onDone(this);
  }
}
