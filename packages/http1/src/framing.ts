// How the end of a message's body is found (RFC 9112, 6.3), what makes it doubtful, and what a scanner says that looks for it.
import { eachListItem } from './characters.ts';
import { type HeadProblem, headProblem } from './field-reader.ts';

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  /** Responses only. */
  | { readonly kind: 'until-close' };

export const NO_BODY: Framing = { kind: 'none' };
export const CHUNKED: Framing = { kind: 'chunked' };
export const UNTIL_CLOSE: Framing = { kind: 'until-close' };

interface FramingFields {
  readonly contentLength: number | null;
  readonly codingCount: number;
  readonly coding: string;
}

/** null: neither length nor coding. What is doubtful in the least is refused: two readers would find two ends. */
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
 * 501 only where the length would be certain, as `chunked` is last and once, but a coding before it is unknown here;
 * else 400 (RFC 9112, 6.1 and 6.3).
 */
const problemOfCoding = (coding: string): HeadProblem => {
  const items: string[] = [];
  eachListItem(coding.toLowerCase(), (item) => items.push(item));
  const isFinal = items.at(-1) === 'chunked' && items.indexOf('chunked') === items.length - 1;
  const isPlainList = items.length > 1 && items.join(', ') === coding.toLowerCase();
  if (isFinal && isPlainList) return headProblem(501, 'Transfer-Encoding other than chunked');
  return headProblem(400, 'Transfer-Encoding must end with a single chunked');
};

/** The body goes on in the next piece. */
export const BODY_INCOMPLETE = -1;
/** The body is malformed: nothing after it can be trusted, so the connection ends. */
export const BODY_BAD = -2;

/** Both are called in the order of the body, and never after the end of `push`. */
export interface BodySink {
  /** `bytes[start, end)` of the piece that is being pushed. */
  forward(start: number, end: number): void;
  /** What takes the place of bytes that were left out; one character per byte. */
  text(piece: string): void;
}

/** Finds the end of a body in bytes that pass by, and says which of them to pass on. Keeps no body bytes. */
export interface BodyScanner {
  /** Why it is bad, once `push` has said so. */
  readonly problem: string | null;
  /** The index after the body's last byte in `bytes[start, end)`, or one of the codes above. Not called again after either end. */
  push(bytes: Uint8Array, start: number, end: number, sink: BodySink): number;
}
