// Size and beginning of a captured body. The beginning is stored as a string with one character per byte, because small strings need less
// memory than small buffers.

import { ChunkedBody } from '../chunked-body.ts';
import { BODY_BAD, type BodySink } from '../framing.ts';

export interface CapturedBodyOptions {
  /** Maximum bytes to store. With 0, the body is only counted. */
  readonly maxBytes: number;
  /** True if the captured bytes include chunk framing. Default: the bytes are plain data. */
  readonly isInChunks?: boolean;
}

export class CapturedBody implements BodySink {
  /** Size of the body data received so far, without chunk framing. */
  bytes = 0;
  kept = '';
  readonly #maxBytes: number;
  readonly #chunks: ChunkedBody | null;
  /** True after an error in the chunk framing. Further bytes are ignored. */
  #isBad = false;
  #piece: Buffer = NOTHING;

  constructor({ maxBytes, isInChunks = false }: CapturedBodyOptions) {
    this.#maxBytes = maxBytes;
    this.#chunks = isInChunks ? new ChunkedBody('data') : null;
  }

  /** True if all data received so far was stored. */
  get isWhole(): boolean {
    return this.kept.length === this.bytes;
  }

  /** Captures the next bytes by copying them. Returns the number of bytes stored in addition. */
  take(bytes: Buffer, start: number, end: number): number {
    const before = this.kept.length;
    this.#piece = bytes;
    if (this.#chunks === null) this.forward(start, end);
    else if (!this.#isBad) this.#isBad = this.#chunks.push(bytes, start, end, this) === BODY_BAD;
    this.#piece = NOTHING;
    return this.kept.length - before;
  }

  /** Method of BodySink: receives data bytes without framing. */
  forward(start: number, end: number): void {
    const room = this.#maxBytes - this.bytes;
    this.bytes += end - start;
    if (room > 0) this.kept += this.#piece.toString('latin1', start, Math.min(end, start + room));
  }

  /** Method of BodySink: never called, because the form 'data' replaces no bytes with text. */
  text(): void {}
}

const NOTHING: Buffer = Buffer.alloc(0);
