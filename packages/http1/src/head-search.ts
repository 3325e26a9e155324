// Finds where a head ends, in bytes that arrive in any pieces, without keeping them.

import { CR, LF } from './characters.ts';
import type { Http1Bounds } from './limits.ts';

/** The head goes on in the next piece. */
export const HEAD_INCOMPLETE = -1;
/** An LF without its CR, or too many empty lines first: 400 at once, whatever follows. */
export const HEAD_BAD_LINE = -2;
/** Over `headMaxBytes`: 431. */
export const HEAD_TOO_LONG = -3;

/** What is known of the head so far. One per connection; `reset` before each head. */
export interface HeadSearch {
  /** Bytes of this head seen so far, the empty lines before it included. */
  seenBytes: number;
  /** Empty lines before the request line: the head begins this many bytes later. */
  leadBytes: number;
  /** Of the line that is not yet complete. */
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
 * The index after the head's last byte in `bytes[from, to)`, or one of the codes above.
 * Lines are found by LF alone; that every other byte is legal is for the parser to say.
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

/** Most lines are shorter: a look at each byte costs less than a call out of the engine. A long one, such as a cookie, is worth that call. */
const NEAR_BYTES = 128;

const nextLf = (bytes: Uint8Array, from: number, to: number): number => {
  const near = Math.min(to, from + NEAR_BYTES);
  for (let at = from; at < near; at += 1) if (bytes[at] === LF) return at;
  const far = near === to ? -1 : bytes.indexOf(LF, near);
  return far < to ? far : -1;
};
