// Finds the end of a head in bytes that arrive in pieces of any size, without storing the bytes.

import { CR, LF } from './characters.ts';
import type { Http1Bounds } from './limits.ts';

/** Result of findHeadEnd: the head continues in the next piece. */
export const HEAD_INCOMPLETE = -1;
/** Result of findHeadEnd: an LF without CR, or too many empty lines before the head. Leads to a 400, whatever follows. */
export const HEAD_BAD_LINE = -2;
/** Result of findHeadEnd: the head is larger than `headMaxBytes`. Leads to a 431. */
export const HEAD_TOO_LONG = -3;

/** Progress of the search for the end of a head. One object per connection; must be reset before every head. */
export interface HeadSearch {
  /** Bytes of the head seen so far, including the empty lines before the head. */
  seenBytes: number;
  /** Size of the empty lines before the request line, and thus the offset of the head. */
  leadBytes: number;
  /** Number of bytes of the last line, which is still incomplete. */
  lineBytes: number;
  endsInCr: boolean;
}

export const newHeadSearch = (): HeadSearch => ({ seenBytes: 0, leadBytes: 0, lineBytes: 0, endsInCr: false });

export const resetHeadSearch = (search: HeadSearch): void => {
  search.seenBytes = 0;
  search.leadBytes = 0;
  search.lineBytes = 0;
  search.endsInCr = false;
};

/**
 * Searches `bytes[from, to)` for the end of the head. Returns the index after the last byte of the head, or one of the codes above.
 * Splits lines only by LF; the parser checks the other bytes.
 */
export const findHeadEnd = (
  bytes: Uint8Array,
  from: number,
  to: number,
  search: HeadSearch,
  bounds: Pick<Http1Bounds, 'headMaxBytes' | 'emptyLinesMax'>,
): number => {
  const before = search.seenBytes - from;
  let lineStart = from - search.lineBytes;
  for (let at = nextLf(bytes, from, to); at !== -1; at = nextLf(bytes, at + 1, to)) {
    const hasCr = at > from ? bytes[at - 1] === CR : search.endsInCr;
    if (!hasCr) return HEAD_BAD_LINE;
    const isEmpty = at - lineStart === 1;
    lineStart = at + 1;
    if (!isEmpty) continue;
    const seen = before + at + 1;
    if (seen === search.leadBytes + 2) {
      search.leadBytes = seen;
      if (seen > 2 * bounds.emptyLinesMax) return HEAD_BAD_LINE;
      continue;
    }
    search.seenBytes = seen;
    return seen - search.leadBytes > bounds.headMaxBytes ? HEAD_TOO_LONG : at + 1;
  }
  if (to > from) search.endsInCr = bytes[to - 1] === CR;
  search.seenBytes = before + to;
  search.lineBytes = to - lineStart;
  return search.seenBytes - search.leadBytes > bounds.headMaxBytes ? HEAD_TOO_LONG : HEAD_INCOMPLETE;
};

/**
 * Number of bytes of a line that are checked one by one. Most lines are shorter, where a loop is faster than a call of indexOf; for
 * longer lines, such as cookies, the call is faster.
 */
const NEAR_BYTES = 128;

const nextLf = (bytes: Uint8Array, from: number, to: number): number => {
  const near = Math.min(to, from + NEAR_BYTES);
  for (let at = from; at < near; at += 1) if (bytes[at] === LF) return at;
  const far = near === to ? -1 : bytes.indexOf(LF, near);
  return far < to ? far : -1;
};
