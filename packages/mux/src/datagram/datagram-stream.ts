// One stream in datagram mode, a flow: whole datagrams both ways, no credit, no retransmission, nothing queued.
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import type { Guarded } from '../loop/guard.ts';
import { FramedStream, type FramingConnection, type StreamAnswer } from '../stream/framed-stream.ts';
import type { DatagramFlows } from './datagram-flows.ts';

/** datagrams of one flow that wait for its reader; more are dropped */
const DATAGRAMS_BEFORE_READ = 8;
/** the same in bytes */
const DATAGRAMS_BEFORE_READ_BYTES = 16 * 1024;

/** Whoever throws in one of these is abandoned, and its stream is reset; no other stream notices. */
export interface DatagramReader extends Guarded {
  /** bytes[start, end) are one whole datagram. The memory is borrowed for the call: what is kept, or sent later, is a copy. */
  onDatagram(bytes: Buffer, start: number, end: number): void;
  /** The flow is over. Nothing follows. */
  onReset(reason: StreamReason): void;
}

export type DatagramAnswer = StreamAnswer<DatagramStream>;

/** `sent`, or why it was dropped. */
export type DatagramOutcome = 'sent' | 'behind' | 'path' | 'away' | 'too-large';

/** What a flow needs of its carrier. */
export interface DatagramConnection extends FramingConnection {
  sendDatagram(stream: DatagramStream, bytes: Buffer, start: number, end: number): 'sent' | 'behind';
  sendAccepted(stream: DatagramStream): void;
}

const REPLACED: StreamReason = { code: 'carrier-lost', text: 'the carrier is being replaced' };
const CALLS = { opened: 'datagrams.opened', refused: 'datagrams.refused', reset: 'datagrams.reset' } as const;

export class DatagramStream extends FramedStream<DatagramConnection, DatagramReader> {
  /** Its number in the session. */
  readonly flow: number;
  /** Datagrams that came before read() and did not fit. */
  droppedBeforeRead = 0;
  readonly #flows: DatagramFlows;
  readonly #isOpener: boolean;
  #early: Buffer[] | null = null;
  #earlyBytes = 0;

  /** Without an answer to come it is the peer's, and waits for ours. */
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

  /** The accepting side: there is a local socket. */
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

  /** Attaches the reader; it gets what came before. Once. */
  read(reader: DatagramReader): void {
    this.reader = reader;
    const early = this.#early;
    this.#early = null;
    for (const bytes of early ?? []) if (this.phase !== 'closed') reader.onDatagram(bytes, 0, bytes.length);
  }

  /** By the carrier: before it accepted a peer sends none. */
  handleDatagram(bytes: Buffer, start: number, end: number): boolean {
    if (this.phase === 'opening') return false;
    this.#deliver(bytes, start, end);
    return true;
  }

  /** By the path, where the first answer may be faster than OPENED. false: it is not open at our end. */
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

  /** The opener may send at once; the accepter after accept(). The memory is free when it returns. */
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

  /** The opener begins anew elsewhere with its next datagram; the peer is told, or this one would keep the carrier for ever. */
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
