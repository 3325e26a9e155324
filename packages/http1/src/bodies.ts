// Creates the body scanner for a message's framing, and the lines around the chunks of a chunked body.
import { isFieldValue, isToken } from './characters.ts';
import { ChunkedBody, type ChunkedForm } from './chunked-body.ts';
import type { FieldPairs } from './fields.ts';
import { BODY_INCOMPLETE, type BodyScanner, type BodySink, type Framing } from './framing.ts';

/** Creates the scanner for a framing. Returns null if no body follows. */
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

/** Scanner for a body of known length, which only counts bytes. */
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

/** Scanner for a body that ends with the connection. The scanner never finds the end; the reader of the connection detects it. */
class UntilCloseBody implements BodyScanner {
  readonly problem = null;

  push(_bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    if (end > start) sink.forward(start, end);
    return BODY_INCOMPLETE;
  }
}

// ---- chunk lines for a body that arrived without chunks (from HTTP/2, or in a replay) ----

/**
 * Returns the line before a chunk of `bytes` bytes; `CHUNK_END` follows the data. Must not be used for empty data, because a chunk of
 * size 0 ends the body.
 */
export const chunkLine = (bytes: number): string => `${bytes.toString(16)}\r\n`;

export const CHUNK_END = '\r\n';

/** Returns the end of a chunked body, with trailers. Omits fields that contain characters that would end the line. */
export const lastChunk = (trailers: FieldPairs = []): string => {
  let text = '0\r\n';
  for (const [name, value] of trailers) {
    if (isToken(name) && isFieldValue(value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
};
