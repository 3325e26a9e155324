// The scanner that a message's framing asks for, and the lines that put a body into chunks.
import { isFieldValue, isToken } from './characters.ts';
import { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
import type { FieldPairs } from './fields.ts';
import { BODY_INCOMPLETE, type BodyScanner, type BodySink, type Framing } from './framing.ts';

/** null: no body follows. */
export const createBodyScanner = (framing: Framing, form: ChunkedForm = 'chunks'): BodyScanner | null => {
  switch (framing.kind) {
    case 'none':
      return null;
    case 'length':
      return framing.length === 0 ? null : new LengthBody(framing.length);
    case 'chunked':
      return new ChunkedBody(form);
    case 'until-close':
      return new UntilCloseBody();
  }
};

/** Of a known length: its bytes need no reading. */
export class LengthBody implements BodyScanner {
  readonly problem = null;
  #remaining: number;

  constructor(length: number) {
    this.#remaining = length;
  }

  get remaining(): number {
    return this.#remaining;
  }

  push(_bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    const stop = Math.min(end, start + this.#remaining);
    this.#remaining -= stop - start;
    if (stop > start) sink.forward(start, stop);
    return this.#remaining === 0 ? stop : BODY_INCOMPLETE;
  }
}

/** Ends with the connection: whoever sees its end says so. */
class UntilCloseBody implements BodyScanner {
  readonly problem = null;

  push(_bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    if (end > start) sink.forward(start, end);
    return BODY_INCOMPLETE;
  }
}

// ---- the lines around chunks, for a body that came without them (HTTP/2, a replay) ----

/** Before `bytes` bytes of data; `CHUNK_END` follows them. Never for an empty piece: a chunk of size 0 ends the body. */
export const chunkLine = (bytes: number): string => `${bytes.toString(16)}\r\n`;

export const CHUNK_END = '\r\n';

/** The end of the body. A field that cannot be written without breaking the line is left out. */
export const lastChunk = (trailers: FieldPairs = []): string => {
  let text = '0\r\n';
  for (const [name, value] of trailers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
};
