// Datagram stream (a flow): whole datagrams in both directions, without credit, retransmission or queue.
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';
import { FramedStream, type FramingConnection, type StreamAnswer } from '../stream/framed-stream.ts';
import type { DatagramFlows } from './datagram-flows.ts';

/** Maximum number of datagrams waiting for a flow's reader. Further datagrams are dropped. */
const DATAGRAMS_BEFORE_READ = 8;
/** Maximum bytes of datagrams that wait until a flow gets its reader. */
const DATAGRAMS_BEFORE_READ_BYTES = 16 * 1024;

/** Receives the datagrams of a flow. If a method throws, abandon() is called and the flow is reset; other streams are not affected. */
export interface DatagramReader extends Guarded {
  /** Called with a whole datagram, bytes[start, end). The memory is valid only during the call; copy bytes to keep or send them later. */
  onDatagram(bytes: Buffer, start: number, end: number): void;
  /** Called when the datagram flow has ended. The reader gets no further call. */
  onReset(reason: StreamReason): void;
}

export type DatagramAnswer = StreamAnswer<DatagramStream>;

/** Result of sending a datagram: `sent`, or the reason why the datagram was dropped. */
export type DatagramOutcome = 'sent' | 'behind' | 'path' | 'away' | 'too-large';

/** Functions of the carrying connection that a datagram flow needs. */
export interface DatagramConnection extends FramingConnection {
  sendDatagram(stream: DatagramStream, bytes: Buffer, start: number, end: number): 'sent' | 'behind';
  sendAccepted(stream: DatagramStream): void;
}

const REPLACED: StreamReason = { code: 'carrier-lost', text: 'the carrier is being replaced' };
const CALLS = { opened: 'datagrams.opened', refused: 'datagrams.refused', reset: 'datagrams.reset' } as const;

export class DatagramStream extends FramedStream<DatagramConnection, DatagramReader> {
  /** Number of this datagram flow in the session. */
  readonly flow: number;
  /** Number of datagrams dropped before the flow had a reader, because the queue was full. */
  droppedBeforeRead = 0;
  readonly #flows: DatagramFlows;
  readonly #isOpener: boolean;
  #early: Buffer[] | null = null;
  #earlyBytes = 0;

  /** Creates a flow. If `answer` is null, the peer opened the flow and waits for our answer. */
  constructor(
    connection: DatagramConnection,
    flows: DatagramFlows,
    { id, flow, openedAtMs }: { id: number; flow: number; openedAtMs: number },
    answer: DatagramAnswer | null,
  ) {
    super(connection, id, openedAtMs, answer);
    this.#flows = flows;
    this.flow = flow;
    this.#isOpener = answer !== null;
  }

  protected get calls(): typeof CALLS {
    return CALLS;
  }

  // ---- opening ----

  /** Accepts the datagram flow that the peer opened, because a local UDP socket was opened. */
  accept(): void {
    if (this.phase !== 'offered') return;
    this.phase = 'open';
    this.connection.sendAccepted(this);
  }

  handleOpened(creditBytes: number): boolean {
    if (this.phase !== 'opening' || creditBytes !== 0) return false;
    this.opened();
    return true;
  }

  // ---- receiving ----

  /** Attaches the reader and delivers datagrams received earlier. Can be called only once. */
  read(reader: DatagramReader): void {
    this.reader = reader;
    const early = this.#early;
    this.#early = null;
    for (const bytes of early ?? []) if (this.phase !== 'closed') reader.onDatagram(bytes, 0, bytes.length);
  }

  /** Handles a datagram from the carrier. Returns false before OPENED, because a peer must not send before it accepted. */
  handleDatagram(bytes: Buffer, start: number, end: number): boolean {
    if (this.phase === 'opening') return false;
    this.#deliver(bytes, start, end);
    return true;
  }

  /**
   * Handles a datagram from the UDP path, where the first answer can arrive before OPENED. Returns false if this side has not accepted the
   * flow.
   */
  handleFromPath(bytes: Buffer, start: number, end: number): boolean {
    if (this.phase === 'offered') return false;
    this.#deliver(bytes, start, end);
    return true;
  }

  #deliver(bytes: Buffer, start: number, end: number): void {
    const reader = this.reader;
    if (reader === null) {
      this.#keep(bytes, start, end);
      return;
    }
    try {
      reader.onDatagram(bytes, start, end);
    } catch (error) {
      this.abandon(reader, error, 'datagrams.datagram');
    }
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#early ??= [];
    const isFull = this.#early.length >= DATAGRAMS_BEFORE_READ;
    if (isFull || this.#earlyBytes + end - start > DATAGRAMS_BEFORE_READ_BYTES) {
      this.droppedBeforeRead += 1;
      return;
    }
    this.#early.push(Buffer.from(bytes.subarray(start, end)));
    this.#earlyBytes += end - start;
  }

  handleData(): boolean {
    return false;
  }

  handleCredit(): boolean {
    return false;
  }

  handleFin(): boolean {
    return false;
  }

  // ---- sending ----

  /** Sends a datagram. The opener can send immediately, the accepter after accept(). The memory is free after the call. */
  send(bytes: Buffer, start: number, end: number): DatagramOutcome {
    const length = end - start;
    if (length > WIRE_LIMITS.DATAGRAM_MAX_BYTES) return 'too-large';
    if (this.phase === 'offered' || this.phase === 'closed') return 'away';
    const path = this.#flows.path;
    // A flow stays on its carrier until OPENED, so that no datagram overtakes its OPEN.
    if (path !== null && this.phase === 'open' && path.isUp && length <= path.maxPayloadBytes) {
      return path.send(this.flow, bytes, start, end) ? 'sent' : 'path';
    }
    return this.connection.sendDatagram(this, bytes, start, end);
  }

  carrierReady(): void {}

  // ---- the end ----

  /**
   * The opener opens a new flow on another carrier with its next datagram. The peer gets a reset, because an open flow would keep the old
   * carrier open.
   */
  handleRetiring(): void {
    if (!this.#isOpener || this.phase === 'closed') return;
    this.connection.sendReset(this, REPLACED);
    this.handleReset(REPLACED);
  }

  protected close(): void {
    this.phase = 'closed';
    this.#early = null;
    this.#flows.remove(this);
    this.connection.forget(this);
  }
}
