// Extracts the few facts of a head that an observer of traffic needs, in one pass over the bytes and without allocations. Handles only
// plain heads, as nearly all heads are. For any other head the scan returns NOT_PLAIN, and the caller uses the full parser, so that scan
// and parser never contradict each other.

import { BLANK, CHAR_CLASSES, CR, DIGIT, HOST, HTAB, LF, SP, TARGET, TOKEN, VALUE } from './characters.ts';
import { HTTP1_BOUNDS, HTTP1_LIMITS } from './limits.ts';

/** Result of a scan if the head is incomplete or not plain, and must be read by the full parser. */
export const NOT_PLAIN = 0;

/** Facts about a plain head. One object per reader, overwritten by every successful scan. */
export interface PlainHead {
  /** Offsets of the target (a path) in a scanned request head. */
  targetFrom: number;
  targetTo: number;
  /** Status code in a scanned response head. */
  status: number;
  /** Value of Content-Length in the scanned head, or -1 if the field is absent. */
  contentLength: number;
  isChunked: boolean;
  /** Offsets of the value of the first Content-Type. The offsets are equal if the field is absent. */
  typeFrom: number;
  typeTo: number;
  /** Offset of the last field line. 0 in a head without fields. */
  lastFrom: number;
}

export const newPlainHead = (): PlainHead => ({
  targetFrom: 0,
  targetTo: 0,
  status: 0,
  contentLength: -1,
  isChunked: false,
  typeFrom: 0,
  typeTo: 0,
  lastFrom: 0,
});

const COLON = 0x3a;
const SLASH = 0x2f;
const LETTER_C = 0x63;
const LETTER_T = 0x74;
const LETTER_U = 0x75;
const ZERO = 0x30;
/** Maximum digits of a Content-Length in a plain head. Fifteen digits are always exact, and no real body is longer. */
const LENGTH_DIGITS_MAX = 15;

const codesOf = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

const HTTP_1_1 = codesOf('HTTP/1.1');
const CONNECT = codesOf('connect');
const HOST_FIELD = codesOf('host');
const UPGRADE = codesOf('upgrade');
const CONNECTION = codesOf('connection');
const CONTENT_LENGTH = codesOf('content-length');
const CONTENT_TYPE = codesOf('content-type');
const TRANSFER_ENCODING = codesOf('transfer-encoding');
const CHUNKED = codesOf('chunked');
const KEEP_ALIVE = codesOf('keep-alive');
const CLOSE = codesOf('close');

const classOf = (bytes: Uint8Array, at: number): number => CHAR_CLASSES[bytes[at] as number] as number;

/** Returns true if `bytes[from, to)` equals `word`. */
const isAt = (bytes: Uint8Array, from: number, to: number, word: Uint8Array): boolean => {
  if (to - from !== word.length) return false;
  for (let at = 0; at < word.length; at += 1) if (bytes[from + at] !== word[at]) return false;
  return true;
};

/**
 * Returns true if `bytes[from, to)` equals `lower`, ignoring case. `lower` must consist of letters and `-`, and the bytes must be a token
 * or a field value.
 */
const isNameAt = (bytes: Uint8Array, from: number, to: number, lower: Uint8Array): boolean => {
  if (to - from !== lower.length) return false;
  for (let at = 0; at < lower.length; at += 1) if (((bytes[from + at] as number) | 0x20) !== lower[at]) return false;
  return true;
};

/**
 * Scans a request head that starts at `from`. Returns the index after the head, or NOT_PLAIN. A plain request has HTTP/1.1, a path, one
 * host, no upgrade, and either no body or a body with a length or in chunks.
 */
export const scanRequestHead = (bytes: Uint8Array, from: number, to: number, head: PlainHead): number => {
  let at = from;
  while (at < to && (classOf(bytes, at) & TOKEN) !== 0) at += 1;
  if (at === from || at + 1 >= to || bytes[at] !== SP || isNameAt(bytes, from, at, CONNECT)) return NOT_PLAIN;
  at += 1;
  if (bytes[at] !== SLASH) return NOT_PLAIN;
  head.targetFrom = at;
  while (at < to && (classOf(bytes, at) & TARGET) !== 0) at += 1;
  head.targetTo = at;
  if (at + 11 > to || bytes[at] !== SP || !isAt(bytes, at + 1, at + 9, HTTP_1_1)) return NOT_PLAIN;
  if (bytes[at + 9] !== CR || bytes[at + 10] !== LF) return NOT_PLAIN;
  const next = scanFields(bytes, at + 11, to, head, true);
  return next - from > HTTP1_BOUNDS.headMaxBytes ? NOT_PLAIN : next;
};

/** Scans the head of a final HTTP/1.1 response. Returns the index after the head, or NOT_PLAIN. */
export const scanResponseHead = (bytes: Uint8Array, from: number, to: number, head: PlainHead): number => {
  if (from + 15 > to || !isAt(bytes, from, from + 8, HTTP_1_1) || bytes[from + 8] !== SP) return NOT_PLAIN;
  if ((classOf(bytes, from + 9) & classOf(bytes, from + 10) & classOf(bytes, from + 11) & DIGIT) === 0) {
    return NOT_PLAIN;
  }
  head.status = digitAt(bytes, from + 9) * 100 + digitAt(bytes, from + 10) * 10 + digitAt(bytes, from + 11);
  if (head.status < 200 || head.status > 599 || bytes[from + 12] !== SP) return NOT_PLAIN;
  let at = from + 13;
  while (at < to && (classOf(bytes, at) & VALUE) !== 0) at += 1;
  if (at + 2 > to || bytes[at] !== CR || bytes[at + 1] !== LF) return NOT_PLAIN;
  const next = scanFields(bytes, at + 2, to, head, false);
  return next - from > HTTP1_BOUNDS.headMaxBytes ? NOT_PLAIN : next;
};

const digitAt = (bytes: Uint8Array, at: number): number => (bytes[at] as number) - ZERO;

const scanFields = (bytes: Uint8Array, start: number, to: number, head: PlainHead, isRequest: boolean): number => {
  // A local constant, because the loops below would otherwise load the table again for every byte.
  const classes = CHAR_CLASSES;
  head.contentLength = -1;
  head.isChunked = false;
  head.typeFrom = 0;
  head.typeTo = 0;
  let hosts = 0;
  let last = 0;
  let at = start;
  for (let count = 0; ; count += 1) {
    if (at + 2 > to) return NOT_PLAIN;
    if (bytes[at] === CR) break;
    if (count === HTTP1_BOUNDS.fieldsMax) return NOT_PLAIN;
    const from = at;
    last = from;
    while (at < to && ((classes[bytes[at] as number] as number) & TOKEN) !== 0) at += 1;
    const colon = at;
    if (colon === from || colon >= to || bytes[colon] !== COLON) return NOT_PLAIN;
    at += 1;
    while (at < to && ((classes[bytes[at] as number] as number) & BLANK) !== 0) at += 1;
    const value = at;
    while (at < to && ((classes[bytes[at] as number] as number) & VALUE) !== 0) at += 1;
    if (at + 2 > to || bytes[at] !== CR || bytes[at + 1] !== LF) return NOT_PLAIN;
    if (isRequest && isNameAt(bytes, from, colon, HOST_FIELD)) {
      hosts += 1;
      if (!isPlainHost(bytes, value, at)) return NOT_PLAIN;
    } else if (!notes(bytes, from, colon, value, at, head, isRequest)) return NOT_PLAIN;
    at += 2;
  }
  if (bytes[at + 1] !== LF || (isRequest && hosts !== 1)) return NOT_PLAIN;
  head.lastFrom = last;
  return head.isChunked && head.contentLength !== -1 ? NOT_PLAIN : at + 2;
};

/** Notes the fields that determine the end of the body and the content type. Returns false if the head is not plain. */
// biome-ignore format: offsets in their order
const notes = (
  bytes: Uint8Array, from: number, colon: number, value: number, end: number, head: PlainHead, isRequest: boolean,
): boolean => {
  const first = (bytes[from] as number) | 0x20;
  switch (colon - from) {
    case 7:
      return !(isRequest && first === LETTER_U && isNameAt(bytes, from, colon, UPGRADE));
    case 10:
      if (first !== LETTER_C || !isNameAt(bytes, from, colon, CONNECTION)) return true;
      return isAt(bytes, value, end, KEEP_ALIVE) || isAt(bytes, value, end, CLOSE);
    case 12:
      if (first !== LETTER_C || head.typeTo !== 0 || !isNameAt(bytes, from, colon, CONTENT_TYPE)) return true;
      head.typeFrom = value;
      head.typeTo = end;
      return end === value || (classOf(bytes, end - 1) & BLANK) === 0;
    case 14:
      if (first !== LETTER_C || !isNameAt(bytes, from, colon, CONTENT_LENGTH)) return true;
      if (head.contentLength !== -1 || !hasOneBlank(bytes, colon, value)) return false;
      head.contentLength = lengthAt(bytes, value, end);
      return head.contentLength !== -1;
    case 17:
      if (first !== LETTER_T || !isNameAt(bytes, from, colon, TRANSFER_ENCODING)) return true;
      if (head.isChunked || !hasOneBlank(bytes, colon, value)) return false;
      head.isChunked = isNameAt(bytes, value, end, CHUNKED);
      return head.isChunked;
    default:
      return true;
  }
};

/** Returns true if at most one space follows the colon. The full parser accepts more blanks, but checks them more closely. */
const hasOneBlank = (bytes: Uint8Array, colon: number, value: number): boolean =>
  value - colon <= 2 && bytes[colon + 1] !== HTAB;

/** Parses the value of Content-Length. Returns -1 if it is not plain digits. */
const lengthAt = (bytes: Uint8Array, from: number, to: number): number => {
  if (to === from || to - from > LENGTH_DIGITS_MAX) return -1;
  let length = 0;
  for (let at = from; at < to; at += 1) {
    if ((classOf(bytes, at) & DIGIT) === 0) return -1;
    length = length * 10 + digitAt(bytes, at);
  }
  return length;
};

/** Returns true for a name or an address without colons, followed by an optional port of at most four digits. */
const isPlainHost = (bytes: Uint8Array, from: number, to: number): boolean => {
  if (to - from > HTTP1_LIMITS.HTTP_AUTHORITY_MAX_CHARS) return false;
  let at = from;
  while (at < to && (classOf(bytes, at) & HOST) !== 0) at += 1;
  if (at === from) return false;
  if (at === to) return true;
  if (bytes[at] !== COLON || to - at > 5) return false;
  for (at += 1; at < to; at += 1) if ((classOf(bytes, at) & DIGIT) === 0) return false;
  return true;
};
