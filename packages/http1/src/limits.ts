// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;

export const HTTP1_LIMITS = {
  /**
   * from the request or status line to the empty line, both included; above: 431
   * @limit visitors: HTTP/1.1 request head, size | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_HEAD_MAX_BYTES: 32 * KiB,
  /**
   * field lines of a head; above: 431
   * @limit visitors: HTTP/1.1 request head, number of header fields | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_FIELDS_MAX: 128,
  /** empty lines that are forgiven before a request line (RFC 9112, 2.2) */
  HTTP_EMPTY_LINES_MAX: 2,
  /** all extensions of one chunk line together */
  HTTP_CHUNK_EXTENSION_MAX_BYTES: 4 * KiB,
  /** size of all trailers */
  HTTP_TRAILERS_MAX_BYTES: 8 * KiB,
  /** a DNS name has at most 253 characters; the longest port adds six */
  HTTP_AUTHORITY_MAX_CHARS: 260,
} as const;

/** Bounds as an argument of readers of messages. */
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
