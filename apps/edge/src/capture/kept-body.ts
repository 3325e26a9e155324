// The beginning of one body: kept as a string with one character per byte, because small strings cost less than small buffers.
import { BODY_BAD, type BodySink, ChunkedBody } from '@tunnel/core';
import { EDGE_LIMITS } from '../limits.ts';

export class KeptBody implements BodySink {
  /** Of the data, without chunk framing. */
  bytes = 0;
  kept = '';
  readonly #room: number;
  /** Follows a body that passes by in chunks; null: it is data as it is, or cannot be followed any more. */
  readonly #chunks: ChunkedBody | null;
  #isBad = false;
  #piece: Buffer = NOTHING;

  constructor(keeps: boolean, isInChunks: boolean) {
    this.#room = keeps ? EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES : 0;
    this.#chunks = isInChunks ? new ChunkedBody('data') : null;
  }

  /** How many bytes more are kept than before. */
  take(bytes: Buffer, start: number, end: number): number {
    const before = this.kept.length;
    this.#piece = bytes;
    if (this.#chunks === null) this.forward(start, end);
    else if (!this.#isBad) this.#isBad = this.#chunks.push(bytes, start, end, this) === BODY_BAD;
    this.#piece = NOTHING;
    return this.kept.length - before;
  }

  forward(start: number, end: number): void {
    const room = this.#room - this.bytes;
    this.bytes += end - start;
    if (room > 0) this.kept += this.#piece.toString('latin1', start, Math.min(end, start + room));
  }

  /** Of the form without framing there is none. */
  text(): void {}
}

const NOTHING: Buffer = Buffer.alloc(0);
