// One stream in datagram mode, a flow: whole datagrams both ways, no credit, no retransmission, nothing queued.
import type { StreamReason } from '@tunnel/protocol';
import type { Guarded } from './guard.ts';

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

/** A faster way than carriers, while there is one. The session asks it for every datagram of an open flow. */
export interface DatagramPathSlot {
  readonly isUp: boolean;
  /** Longer ones take the carrier. */
  readonly maxPayloadBytes: number;
  /** Before it returns the bytes are sealed or copied. false: dropped. */
  send(flow: number, bytes: Buffer, start: number, end: number): boolean;
}

export interface DatagramStream {
  readonly id: number;
  /** Its number in the session. */
  readonly flow: number;
  readonly state: 'opening' | 'offered' | 'open' | 'closed';
  /** Its carrier takes no new streams any more: the next datagram may as well open a new flow. */
  readonly isRetiring: boolean;
  /** Datagrams that came before read() and did not fit. */
  readonly droppedBeforeRead: number;
  /** The accepting side: there is a local socket. */
  accept(): void;
  refuse(reason: StreamReason): void;
  /** Idempotent; the own reader is not told. */
  reset(reason: StreamReason): void;
  /** Attaches the reader; it gets what came before. Once. */
  read(reader: DatagramReader): void;
  /** The opener may send at once; the accepter after accept(). The memory is free when it returns. */
  send(bytes: Buffer, start: number, end: number): DatagramOutcome;
}
