// One stream in datagram mode, a flow: whole datagrams both ways, no credit, no retransmission, nothing queued.
import type { ListNode } from '@tunnel/core';
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { BROKEN } from '../bytes/byte-duplex.ts';
import { MUX_LIMITS } from '../limits.ts';
import type { Guarded, ReportInternalError } from '../loop/guard.ts';
import type { FramedStream } from '../stream/framed-stream.ts';
import type { DatagramFlows } from './datagram-flows.ts';

/** Whoever throws in one of these is abandoned, and its stream is reset; no other stream notices. */
export interface DatagramReader extends Guarded {
  /** bytes[start, end) are one whole datagram. The memory is borrowed for the call: what is kept, or sent later, is a copy. */
  onDatagram(bytes: Buffer, start: number, end: number): void;
  /** The flow is over. Nothing follows. */
  onReset(reason: StreamReason): void;
}

export interface DatagramAnswer extends Guarded {
  onOpened(stream: DatagramStream): void;
  onRefused(reason: StreamReason): void;
}

/** `sent`, or why it was dropped. */
export type DatagramOutcome = 'sent' | 'behind' | 'path' | 'away' | 'too-large';

/** What a flow needs of its carrier. */
export interface DatagramConnection {
  readonly retiring: boolean;
  sendDatagram(stream: DatagramStream, bytes: Buffer, start: number, end: number): 'sent' | 'behind';
  sendAccepted(stream: DatagramStream): void;
  sendRefused(stream: DatagramStream, reason: StreamReason): void;
  sendReset(stream: DatagramStream, reason: StreamReason): void;
  forget(stream: DatagramStream): void;
  readonly report: ReportInternalError;
}

const REPLACED: StreamReason = { code: 'carrier-lost', text: 'the carrier is being replaced' };

export class DatagramStream implements FramedStream {
  readonly id: number;
  /** Its number in the session. */
  readonly flow: number;
  readonly openedAtMs: number;
  tunnelId = '';
  unanswered: ListNode<FramedStream> | null = null;
  /** Datagrams that came before read() and did not fit. */
  droppedBeforeRead = 0;
  readonly #connection: DatagramConnection;
  readonly #flows: DatagramFlows;
  readonly #isOpener: boolean;
  #state: 'opening' | 'offered' | 'open' | 'closed';
  #answer: DatagramAnswer | null;
  #reader: DatagramReader | null = null;
  #early: Buffer[] | null = null;
  #earlyBytes = 0;

  /** Without an answer to come it is the peer's, and waits for ours. */
  constructor(
    connection: DatagramConnection,
    flows: DatagramFlows,
    { id, flow, openedAtMs }: { id: number; flow: number; openedAtMs: number },
    answer: DatagramAnswer | null,
  ) {
    this.#connection = connection;
    this.#flows = flows;
    this.id = id;
    this.flow = flow;
    this.openedAtMs = openedAtMs;
    this.#isOpener = answer !== null;
    this.#answer = answer;
    this.#state = this.#isOpener ? 'opening' : 'offered';
  }

  get state(): 'opening' | 'offered' | 'open' | 'closed' {
    return this.#state;
  }

  /** Its carrier takes no new streams any more: the next datagram may as well open a new flow. */
  get isRetiring(): boolean {
    return this.#connection.retiring;
  }

  // ---- opening ----

  /** The accepting side: there is a local socket. */
  accept(): void {
    if (this.#state !== 'offered') return;
    this.#state = 'open';
    this.#connection.sendAccepted(this);
  }

  refuse(reason: StreamReason): void {
    if (this.#state !== 'offered') return;
    this.#connection.sendRefused(this, reason);
    this.#close();
  }

  handleOpened(creditBytes: number): boolean {
    if (this.#state !== 'opening' || creditBytes !== 0) return false;
    this.#state = 'open';
    const answer = this.#answer;
    this.#answer = null;
    try {
      answer?.onOpened(this);
    } catch (error) {
      this.#abandon(answer, error, 'datagrams.opened');
    }
    return true;
  }

  handleRefused(reason: StreamReason): boolean {
    if (this.#state !== 'opening') return false;
    this.handleReset(reason);
    return true;
  }

  // ---- receiving ----

  /** Attaches the reader; it gets what came before. Once. */
  read(reader: DatagramReader): void {
    this.#reader = reader;
    const early = this.#early;
    this.#early = null;
    for (const bytes of early ?? []) if (this.#state !== 'closed') reader.onDatagram(bytes, 0, bytes.length);
  }

  /** By the carrier: before it accepted a peer sends none. */
  handleDatagram(bytes: Buffer, start: number, end: number): boolean {
    if (this.#state === 'opening') return false;
    this.#deliver(bytes, start, end);
    return true;
  }

  /** By the path, where the first answer may be faster than OPENED. false: it is not open at our end. */
  handleFromPath(bytes: Buffer, start: number, end: number): boolean {
    if (this.#state === 'offered') return false;
    this.#deliver(bytes, start, end);
    return true;
  }

  #deliver(bytes: Buffer, start: number, end: number): void {
    const reader = this.#reader;
    if (reader === null) {
      this.#keep(bytes, start, end);
      return;
    }
    try {
      reader.onDatagram(bytes, start, end);
    } catch (error) {
      this.#abandon(reader, error, 'datagrams.datagram');
    }
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#early ??= [];
    const isFull = this.#early.length >= MUX_LIMITS.DATAGRAMS_BEFORE_READ;
    if (isFull || this.#earlyBytes + end - start > MUX_LIMITS.DATAGRAMS_BEFORE_READ_BYTES) {
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
    if (this.#state === 'offered' || this.#state === 'closed') return 'away';
    const path = this.#flows.path;
    // A flow stays on its carrier until OPENED, so that no datagram overtakes its OPEN.
    if (path !== null && this.#state === 'open' && path.isUp && length <= path.maxPayloadBytes) {
      return path.send(this.flow, bytes, start, end) ? 'sent' : 'path';
    }
    return this.#connection.sendDatagram(this, bytes, start, end);
  }

  carrierReady(): void {}

  // ---- the end ----

  /** Idempotent; the own reader is not told. */
  reset(reason: StreamReason): void {
    if (this.#state === 'offered') this.refuse(reason);
    if (this.#state === 'closed') return;
    this.#answer = null;
    this.#connection.sendReset(this, reason);
    this.#close();
  }

  handleReset(reason: StreamReason): void {
    if (this.#state === 'closed') return;
    const answer = this.#answer;
    const reader = this.#reader;
    this.#answer = null;
    this.#close();
    try {
      if (answer !== null) answer.onRefused(reason);
      else reader?.onReset(reason);
    } catch (error) {
      this.#abandon(answer ?? reader, error, answer === null ? 'datagrams.reset' : 'datagrams.refused');
    }
  }

  /** The opener begins anew elsewhere with its next datagram; the peer is told, or this one would keep the carrier for ever. */
  handleRetiring(): void {
    if (!this.#isOpener || this.#state === 'closed') return;
    this.#connection.sendReset(this, REPLACED);
    this.handleReset(REPLACED);
  }

  #abandon(owner: Guarded | null, error: unknown, where: string): void {
    try {
      if (owner === null) this.#connection.report(error, where);
      else owner.abandon(error, where);
    } catch (second) {
      this.#connection.report(second, where);
    }
    this.reset(BROKEN);
  }

  #close(): void {
    this.#state = 'closed';
    this.#early = null;
    this.#flows.remove(this);
    this.#connection.forget(this);
  }
}
