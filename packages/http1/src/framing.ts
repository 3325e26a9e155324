// Determines how a message's body ends (RFC 9112, 6.3), rejects ambiguous framing, and defines the interface of body scanners.
import { eachListItem } from './characters.ts';
import { type HeadProblem, headProblem } from './field-reader.ts';

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  /** The body ends with the connection. Only responses can use this framing. */
  | { readonly kind: 'until-close' };

export const NO_BODY: Framing = { kind: 'none' };
export const CHUNKED: Framing = { kind: 'chunked' };
export const UNTIL_CLOSE: Framing = { kind: 'until-close' };

interface FramingFields {
  readonly contentLength: number | null;
  readonly codingCount: number;
  readonly coding: string;
}

/**
 * Determines the framing of a body from its fields. Returns null if there is neither a length nor a coding. Rejects every ambiguity,
 * because two parsers could find two different ends.
 */
export const readFraming = (version: '1.0' | '1.1', fields: FramingFields): Framing | HeadProblem | null => {
  if (fields.codingCount === 0) {
    return fields.contentLength === null ? null : { kind: 'length', length: fields.contentLength };
  }
  if (fields.contentLength !== null) return headProblem(400, 'both Content-Length and Transfer-Encoding');
  if (version === '1.0') return headProblem(400, 'Transfer-Encoding in HTTP/1.0');
  if (fields.codingCount > 1) return headProblem(400, 'Transfer-Encoding is repeated');
  return fields.coding.toLowerCase() === 'chunked' ? CHUNKED : problemOfCoding(fields.coding);
};

/**
 * Returns the error for a Transfer-Encoding other than `chunked`: 501 if the length would be certain, because `chunked` comes last and
 * once after an unknown coding; otherwise 400 (RFC 9112, 6.1 and 6.3).
 */
const problemOfCoding = (coding: string): HeadProblem => {
  const items: string[] = [];
  eachListItem(coding.toLowerCase(), (item) => items.push(item));
  const isFinal = items.at(-1) === 'chunked' && items.indexOf('chunked') === items.length - 1;
  const isPlainList = items.length > 1 && items.join(', ') === coding.toLowerCase();
  if (isFinal && isPlainList) return headProblem(501, 'Transfer-Encoding other than chunked');
  return headProblem(400, 'Transfer-Encoding must end with a single chunked');
};

/** Result of a body scanner: the body continues in the next piece. */
export const BODY_INCOMPLETE = -1;
/** Result of a body scanner: the body is malformed. The bytes after it cannot be trusted, so the connection must be closed. */
export const BODY_BAD = -2;

/**
 * Receives the parts of a body that a scanner passes on. The methods are called in the order of the body, and never after `push` has
 * returned.
 */
export interface BodySink {
  /** Receives `bytes[start, end)` of the piece that is being pushed. */
  forward(start: number, end: number): void;
  /** Receives text that replaces omitted bytes, one character per byte. */
  text(piece: string): void;
}

/** Finds the end of a body in passing bytes, and tells the sink which bytes to pass on. Stores no body bytes. */
export interface BodyScanner {
  /** Reason for the error, once `push` has returned BODY_BAD. */
  readonly problem: string | null;
  /**
   * Scans `bytes[start, end)`. Returns the index after the body's last byte, or one of the codes above. Must not be called again after
   * the end or an error.
   */
  push(bytes: Uint8Array, start: number, end: number, sink: BodySink): number;
}
