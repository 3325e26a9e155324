// Collects the bytes of consecutive heads. Most heads arrive in a single piece and are read in place.
import {
  findHeadEnd,
  HEAD_BAD_LINE,
  HEAD_INCOMPLETE,
  HEAD_TOO_LONG,
  type HeadSearch,
  HTTP1_BOUNDS,
  type Http1Bounds,
  newHeadSearch,
  resetHeadSearch,
} from '@tunnel/http1';

export type HeadReading =
  | { readonly kind: 'more' }
  /** A complete HTTP/1.1 head was read. `next` is the index after the head. */
  | { readonly kind: 'head'; readonly text: string; readonly next: number }
  | { readonly kind: 'problem'; readonly status: 400 | 431; readonly reason: string };

type HeadBounds = Pick<Http1Bounds, 'headMaxBytes' | 'emptyLinesMax'>;

/** Bounds for reading response heads: a response must not start with empty lines. */
export const RESPONSE_BOUNDS: HeadBounds = { ...HTTP1_BOUNDS, emptyLinesMax: 0 };

const MORE: HeadReading = { kind: 'more' };

export class HeadReader {
  readonly #search: HeadSearch = newHeadSearch();
  readonly #bounds: HeadBounds;
  /** Earlier pieces of the HTTP/1.1 head being read, or null. */
  #kept: Buffer[] | null = null;

  constructor(bounds: HeadBounds = HTTP1_BOUNDS) {
    this.#bounds = bounds;
  }

  /** True if part of an HTTP/1.1 head has arrived. */
  get begun(): boolean {
    return this.#search.seenBytes > 0;
  }

  read(bytes: Buffer, start: number, end: number): HeadReading {
    const next = findHeadEnd(bytes, start, end, this.#search, this.#bounds);
    switch (next) {
      case HEAD_INCOMPLETE:
        this.#kept ??= [];
        this.#kept.push(Buffer.from(bytes.subarray(start, end)));
        return MORE;
      case HEAD_BAD_LINE:
        return { kind: 'problem', status: 400, reason: 'a line does not end in CR LF' };
      case HEAD_TOO_LONG:
        return {
          kind: 'problem',
          status: 431,
          reason: `the headers are larger than ${HTTP1_BOUNDS.headMaxBytes} bytes`,
        };
      default:
        return { kind: 'head', text: this.#finish(bytes, start, next), next };
    }
  }

  #finish(bytes: Buffer, start: number, next: number): string {
    const lead = this.#search.leadBytes;
    resetHeadSearch(this.#search);
    if (this.#kept === null) return bytes.toString('latin1', start + lead, next);
    const whole = Buffer.concat([...this.#kept, bytes.subarray(start, next)]);
    this.#kept = null;
    return whole.toString('latin1', lead);
  }
}
