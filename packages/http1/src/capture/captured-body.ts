// The size of one body, and its beginning: a string with one character per byte, because small strings cost less than small buffers.

import { ChunkedBody } from '../chunked-body.ts';
import { BODY_BAD, type BodySink } from '../framing.ts';

export interface CapturedBodyOptions {
  /** What is kept of it; 0: it is counted only. */
  readonly maxBytes: number;
  /** It passes by with its chunk framing; else it is data as it is. */
  readonly isInChunks?: boolean;
}

export class CapturedBody implements BodySink {
  /** Of the data, without chunk framing. */
  bytes = 0;
  kept = '';
  readonly #maxBytes: number;
  readonly #chunks: ChunkedBody | null;
  /** Its framing cannot be followed any more. */
  #isBad = false;
  #piece: Buffer = NOTHING;

  constructor({ maxBytes, isInChunks = false }: CapturedBodyOptions) {
    this.#maxBytes = maxBytes;
    this.#chunks = isInChunks ? new ChunkedBody('data') : null;
  }

  /** Nothing of what came is missing. */
  get isWhole(): boolean {
    return this.kept.length === this.bytes;
  }

  /** The next bytes, which are copied. Returns how many more are kept than before. */
  take(bytes: Buffer, start: number, end: number): number {
    const before = this.kept.length;
    this.#piece = bytes;
    if (this.#chunks === null) this.forward(start, end);
    else if (!this.#isBad) this.#isBad = this.#chunks.push(bytes, start, end, this) === BODY_BAD;
    this.#piece = NOTHING;
    return this.kept.length - before;
  }

  /** BodySink: these bytes are data. */
  forward(start: number, end: number): void {
    const room = this.#maxBytes - this.bytes;
    this.bytes += end - start;
    if (room > 0) this.kept += this.#piece.toString('latin1', start, Math.min(end, start + room));
  }

  /** Of the form without framing there is none. */
  text(): void {}
}

const NOTHING: Buffer = Buffer.alloc(0);
