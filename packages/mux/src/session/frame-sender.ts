// Sends frames without visitor data. A single scratch buffer is enough, because the carrier copies every frame.
import {
  encodeOpen,
  encodeReason,
  FRAME,
  type FrameTable,
  readUint32,
  type StreamHead,
  type StreamReason,
  WIRE_LIMITS,
  writeCompactOpen,
  writeCredit,
  writeFin,
  writePing,
} from '@tunnel/protocol';
import type { Carrier } from '../carrier/carrier.ts';

const SCRATCH = new Uint8Array(WIRE_LIMITS.FRAME_HEADER_BYTES + WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);

export class FrameSender {
  readonly #carrier: Carrier;
  /** True if both sides negotiated the compact form of the OPEN frame. */
  readonly #compact: boolean;

  constructor(carrier: Carrier, frames: FrameTable) {
    this.#carrier = carrier;
    this.#compact = frames[FRAME.OPEN_COMPACT] !== undefined;
  }

  open(streamId: number, head: StreamHead, windowBytes: number): void {
    if (!this.#compact) {
      this.#carrier.send(encodeOpen(streamId, head, windowBytes));
      return;
    }
    const end = writeCompactOpen(SCRATCH, streamId, head, windowBytes);
    this.#carrier.send(SCRATCH, end);
    // Clears the scratch buffer after encoding OPEN, because it contained the visitor's address.
    SCRATCH.fill(0, 0, end);
  }

  credit(type: typeof FRAME.OPENED | typeof FRAME.WINDOW, streamId: number, bytes: number): void {
    this.#carrier.send(SCRATCH, writeCredit(SCRATCH, type, streamId, bytes));
  }

  fin(streamId: number): void {
    this.#carrier.send(SCRATCH, writeFin(SCRATCH, streamId));
  }

  reason(
    type: typeof FRAME.REFUSED | typeof FRAME.RESET | typeof FRAME.GO_AWAY,
    streamId: number,
    reason: StreamReason,
  ): void {
    this.#carrier.send(encodeReason(type, streamId, reason));
  }

  /** Sends a PING frame with our timestamp and a mark of our choice, which the peer echoes. */
  ping(nowMs: number, mark = 0): void {
    this.#carrier.send(SCRATCH, writePing(SCRATCH, FRAME.PING, mark, nowMs >>> 0));
  }

  pong(payload: Uint8Array): void {
    this.#carrier.send(SCRATCH, writePing(SCRATCH, FRAME.PONG, readUint32(payload, 0), readUint32(payload, 4)));
  }
}
