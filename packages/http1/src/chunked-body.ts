// Parser for chunked bodies (RFC 9112, 7.1). The bytes can arrive in pieces of any size. Counts the data bytes without reading them.

import { CHAR_CLASSES, CR, HEX, LF, latin1Text, TOKEN, VALUE } from './characters.ts';
import type { HeaderField } from './fields.ts';
import { BODY_BAD, BODY_INCOMPLETE, type BodyScanner, type BodySink } from './framing.ts';
import { findHeadEnd, HEAD_INCOMPLETE, HEAD_TOO_LONG, type HeadSearch, newHeadSearch } from './head-search.ts';
import { HTTP1_BOUNDS, type Http1Bounds } from './limits.ts';
import { NO_TRAILERS, readTrailers } from './trailers.ts';

/**
 * Form in which the body is passed on. `chunks`: as chunks, without extensions. `data`: only the content, for captures, HTTP/1.0 and
 * HTTP/2.
 */
export type ChunkedForm = 'chunks' | 'data';

type State =
  | 'size-first'
  | 'size'
  | 'extension'
  | 'size-lf'
  | 'data'
  | 'data-cr'
  | 'data-lf'
  | 'trailers-first'
  | 'trailers'
  | 'final-lf'
  | 'done'
  | 'bad';

const SEMICOLON = 0x3b;
/** Maximum digits of a chunk size. 2^53 has fourteen digits; a few leading zeros are legal and harmless. */
const SIZE_MAX_DIGITS = 16;

export class ChunkedBody implements BodyScanner {
  /** Reason for the error in a malformed body. */
  problem: string | null = null;
  /** Trailers, available when the body is complete. */
  trailers: readonly HeaderField[] = NO_TRAILERS;
  readonly #form: ChunkedForm;
  readonly #bounds: Http1Bounds;
  #state: State = 'size-first';
  #digits = 0;
  /** Size of the current chunk; while the data is read, the number of bytes left. */
  #size = 0;
  #extension: ExtensionState = 'name-first';
  #extensionBytes = 0;
  #search: HeadSearch | null = null;
  #trailerText = '';
  /** Start of the bytes to pass on in the current piece, or -1 if the current bytes are not passed on. */
  #runFrom = -1;

  constructor(form: ChunkedForm = 'chunks', bounds: Http1Bounds = HTTP1_BOUNDS) {
    this.#form = form;
    this.#bounds = bounds;
  }

  push(bytes: Uint8Array, start: number, end: number, sink: BodySink): number {
    this.#runFrom = this.#isPassedOn() ? start : -1;
    let at = start;
    while (at < end && this.#state !== 'done' && this.#state !== 'bad') {
      if (this.#state === 'data') at = this.#passData(at, end, sink);
      else if (this.#state === 'trailers') at = this.#readTrailers(bytes, at, end, sink);
      else {
        this.#readByte(bytes[at] as number, at, sink);
        at += 1;
      }
    }
    // Do not pass on malformed bytes: the receiver must not mistake a part of the body for the whole body.
    if (this.#state === 'bad') return BODY_BAD;
    this.#endRun(at, sink);
    return this.#state === 'done' ? at : BODY_INCOMPLETE;
  }

  #isPassedOn(): boolean {
    if (this.#form === 'data') return this.#state === 'data';
    return this.#state !== 'extension' && this.#state !== 'trailers';
  }

  #endRun(at: number, sink: BodySink): void {
    if (this.#runFrom !== -1 && at > this.#runFrom) sink.forward(this.#runFrom, at);
    this.#runFrom = -1;
  }

  #passData(at: number, end: number, sink: BodySink): number {
    const stop = Math.min(end, at + this.#size);
    this.#size -= stop - at;
    if (this.#size > 0) return stop;
    this.#state = 'data-cr';
    if (this.#form === 'data') this.#endRun(stop, sink);
    return stop;
  }

  #readByte(byte: number, at: number, sink: BodySink): void {
    switch (this.#state) {
      case 'size-first':
      case 'size':
        return this.#readSize(byte, at, sink);
      case 'extension':
        return this.#readExtension(byte, at);
      case 'size-lf':
        return byte === LF ? this.#beginChunk(at + 1) : this.#fail('chunk line does not end with CRLF');
      case 'data-cr':
        return this.#expect(byte, CR, 'data-lf', 'chunk longer than the chunk size');
      case 'data-lf':
        return this.#expect(byte, LF, 'size-first', 'chunk does not end with CRLF');
      case 'trailers-first':
        if (byte === CR) this.#state = 'final-lf';
        else this.#beginTrailers(byte, at, sink);
        return;
      case 'final-lf':
        return this.#expect(byte, LF, 'done', 'body does not end with CRLF');
      default:
        return;
    }
  }

  #readSize(byte: number, at: number, sink: BodySink): void {
    if (((CHAR_CLASSES[byte] as number) & HEX) !== 0) {
      this.#digits += 1;
      this.#size = this.#size * 16 + (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57);
      this.#state = 'size';
      if (this.#digits > SIZE_MAX_DIGITS || this.#size > Number.MAX_SAFE_INTEGER) this.#fail('chunk size too large');
    } else if (this.#state === 'size-first') this.#fail('chunk size is not a hexadecimal number');
    else if (byte === CR) this.#state = 'size-lf';
    else if (byte === SEMICOLON) {
      this.#endRun(at, sink);
      this.#state = 'extension';
      this.#extension = 'name-first';
      this.#extensionBytes = 1;
    } else this.#fail('chunk size is not a hexadecimal number');
  }

  #readExtension(byte: number, at: number): void {
    this.#extension = afterExtensionByte(this.#extension, byte);
    this.#extensionBytes += 1;
    if (this.#extension === 'bad') this.#fail('malformed chunk extension');
    else if (this.#extensionBytes > this.#bounds.chunkExtensionMaxBytes) this.#fail('chunk extension too long');
    else if (this.#extension === 'end') {
      this.#state = 'size-lf';
      if (this.#form === 'chunks') this.#runFrom = at;
    }
  }

  #beginChunk(dataFrom: number): void {
    this.#state = this.#size === 0 ? 'trailers-first' : 'data';
    this.#digits = 0;
    if (this.#form === 'data' && this.#state === 'data') this.#runFrom = dataFrom;
  }

  /** Starts reading trailers. `byte` is the first byte after the last chunk, and belongs to the trailers. */
  #beginTrailers(byte: number, at: number, sink: BodySink): void {
    this.#endRun(at, sink);
    if (byte === LF) return this.#fail('line ends with LF instead of CRLF');
    this.#state = 'trailers';
    this.#search = newHeadSearch();
    this.#search.seenBytes = 1;
    this.#search.lineBytes = 1;
    this.#trailerText = String.fromCharCode(byte);
  }

  #readTrailers(bytes: Uint8Array, at: number, end: number, sink: BodySink): number {
    const bounds = { headMaxBytes: this.#bounds.trailersMaxBytes, emptyLinesMax: 0 };
    const found = findHeadEnd(bytes, at, end, this.#search as HeadSearch, bounds);
    if (found < 0 && found !== HEAD_INCOMPLETE) {
      this.#fail(found === HEAD_TOO_LONG ? 'trailers too long' : 'line ends with LF instead of CRLF');
      return end;
    }
    const stop = found === HEAD_INCOMPLETE ? end : found;
    this.#trailerText += latin1Text(bytes, at, stop);
    if (found === HEAD_INCOMPLETE) return end;
    const trailers = readTrailers(this.#trailerText, this.#bounds.fieldsMax);
    if (trailers.kind === 'problem') {
      this.#fail(trailers.reason);
      return stop;
    }
    this.trailers = trailers.fields;
    if (this.#form === 'chunks') sink.text(trailers.text);
    this.#state = 'done';
    return stop;
  }

  #expect(byte: number, wanted: number, next: State, otherwise: string): void {
    if (byte === wanted) this.#state = next;
    else this.#fail(otherwise);
  }

  #fail(reason: string): void {
    this.problem = reason;
    this.#state = 'bad';
  }
}

// Parser for the extensions of a chunk line (RFC 9112, 7.1.1), byte by byte. Extensions are legal, but the edge ignores them and does not
// pass them on.

/**
 * State within extensions of the form `;name`, `;name=value` or `;name="quoted \" value"`, any number of times. Blanks in between are
 * "bad whitespace" and are rejected.
 */
type ExtensionState =
  | 'name-first'
  | 'name'
  | 'value-first'
  | 'value'
  | 'quoted'
  | 'quoted-pair'
  | 'after-quoted'
  /** The CR that ends the extensions of a chunk line was read. */
  | 'end'
  | 'bad';

const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const afterExtensionByte = (state: ExtensionState, byte: number): ExtensionState => {
  switch (state) {
    case 'name-first':
      return isToken(byte) ? 'name' : 'bad';
    case 'name':
      if (isToken(byte)) return 'name';
      return byte === EQUALS ? 'value-first' : afterPart(byte);
    case 'value-first':
      if (byte === QUOTE) return 'quoted';
      return isToken(byte) ? 'value' : 'bad';
    case 'value':
      return isToken(byte) ? 'value' : afterPart(byte);
    case 'quoted':
      if (byte === QUOTE) return 'after-quoted';
      if (byte === BACKSLASH) return 'quoted-pair';
      return isText(byte) ? 'quoted' : 'bad';
    case 'quoted-pair':
      return isText(byte) ? 'quoted' : 'bad';
    case 'after-quoted':
      return afterPart(byte);
    case 'end':
    case 'bad':
      return 'bad';
  }
};

const afterPart = (byte: number): ExtensionState => {
  if (byte === SEMICOLON) return 'name-first';
  return byte === CR ? 'end' : 'bad';
};

const isToken = (byte: number): boolean => ((CHAR_CLASSES[byte] as number) & TOKEN) !== 0;
const isText = (byte: number): boolean => ((CHAR_CLASSES[byte] as number) & VALUE) !== 0;
