// Every bound of HTTP/1.1 messages, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const HTTP1_LIMITS = {
  // --- messages of HTTP/1.1 ---
  /**
   * from the request or status line to the empty line, both included; above: 431
   * @limit visitors: HTTP/1.1 request head, size | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_HEAD_MAX_BYTES: 32 * KiB,
  /**
   * field lines of a head; above: 431
   * @limit visitors: HTTP/1.1 request head, header fields | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_FIELDS_MAX: 128,
  /** empty lines that are forgiven before a request line (RFC 9112, 2.2) */
  HTTP_EMPTY_LINES_MAX: 2,
  /** all extensions of one chunk line together */
  HTTP_CHUNK_EXTENSION_MAX_BYTES: 4 * KiB,
  /** field lines after the last chunk, together */
  HTTP_TRAILERS_MAX_BYTES: 8 * KiB,
  /** sixteen digits hold every safe integer, and leave room for a writer that pads with zeros */
  HTTP_LENGTH_MAX_DIGITS: 16,
  /** names in `Connection`: each is compared with each field, so a long list would be work for nothing */
  HTTP_CONNECTION_OPTIONS_MAX: 32,
  /** a DNS name has at most 253 characters; the longest port adds six */
  HTTP_AUTHORITY_MAX_CHARS: 260,
} as const;

/** Those that a reader of messages may want otherwise, as an argument. */
export interface Http1Bounds {
  readonly headMaxBytes: number;
  readonly fieldsMax: number;
  readonly emptyLinesMax: number;
  readonly chunkExtensionMaxBytes: number;
  readonly trailersMaxBytes: number;
}
export const HTTP1_BOUNDS: Http1Bounds = {
  headMaxBytes: HTTP1_LIMITS.HTTP_HEAD_MAX_BYTES,
  fieldsMax: HTTP1_LIMITS.HTTP_FIELDS_MAX,
  emptyLinesMax: HTTP1_LIMITS.HTTP_EMPTY_LINES_MAX,
  chunkExtensionMaxBytes: HTTP1_LIMITS.HTTP_CHUNK_EXTENSION_MAX_BYTES,
  trailersMaxBytes: HTTP1_LIMITS.HTTP_TRAILERS_MAX_BYTES,
};
