// Limits used by several files of this package or by other packages.

const KiB = 1024;

export const HTTP1_LIMITS = {
  /**
   * Maximum size of a head, from the request or status line to the final empty line inclusive. A larger request head gets a 431.
   * @limit visitors: HTTP/1.1 request head, size | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_HEAD_MAX_BYTES: 32 * KiB,
  /**
   * Maximum number of field lines in a head. A request head with more gets a 431.
   * @limit visitors: HTTP/1.1 request head, number of header fields | 431 `HTTP_HEAD_TOO_LARGE`
   */
  HTTP_FIELDS_MAX: 128,
  /** Maximum number of empty lines tolerated before a request line (RFC 9112, 2.2). */
  HTTP_EMPTY_LINES_MAX: 2,
  /** Maximum total size of the extensions of a chunk line. */
  HTTP_CHUNK_EXTENSION_MAX_BYTES: 4 * KiB,
  /** Maximum total size of the trailers of a message. */
  HTTP_TRAILERS_MAX_BYTES: 8 * KiB,
  /** Maximum length of `host[:port]`: a DNS name has at most 253 characters, and the longest port adds six. */
  HTTP_AUTHORITY_MAX_CHARS: 260,
} as const;

/** Limits that are passed to the parsers of messages as an argument. */
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
