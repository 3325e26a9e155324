// Every bound of the HTTP/1.1 rules in one value. The rim passes its own when it wants others.

export interface Http1Bounds {
  /** From the request or status line to the empty line, both included. Above: 431. */
  readonly headMaxBytes: number;
  /** Field lines of a head. Above: 431. */
  readonly fieldsMax: number;
  /** Empty lines that are forgiven before a request line (RFC 9112, 2.2). */
  readonly emptyLinesMax: number;
  /** All extensions of one chunk line together. */
  readonly chunkExtensionMaxBytes: number;
  /** Field lines after the last chunk, together. */
  readonly trailersMaxBytes: number;
}

export const HTTP1_BOUNDS: Http1Bounds = {
  headMaxBytes: 32 * 1024,
  fieldsMax: 128,
  emptyLinesMax: 2,
  chunkExtensionMaxBytes: 4 * 1024,
  trailersMaxBytes: 8 * 1024,
};

/** Sixteen digits hold every safe integer, and leave room for a writer that pads with zeros. */
export const LENGTH_MAX_DIGITS = 16;

/** Names in `Connection`: each is compared with each field, so a long list would be work for nothing. */
export const CONNECTION_OPTIONS_MAX = 32;

/** A DNS name has at most 253 characters; the longest port adds six. */
export const AUTHORITY_MAX_CHARACTERS = 260;
