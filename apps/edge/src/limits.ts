// Limits shared by several folders of the edge, or with other packages.
import { CAPTURES_KEPT_MAX } from '@tunnel/contract';

const KiB = 1024;
const MiB = 1024 * KiB;

export const EDGE_LIMITS = {
  /** Interval at which the edge handles due work: pings, dead carriers and held ports. */
  SESSION_TICK_MS: 1000,
  /** Maximum connections that the operating system accepts and queues while the edge is busy. */
  VISITOR_BACKLOG: 4096,
  /** Maximum bytes from a visitor that the edge buffers until the connection to the local service is open. */
  PRECONNECT_BUFFER_BYTES: 64 * KiB,
  /** TCP keep-alive delay of connections to visitors. The edge detects a vanished visitor some minutes later. */
  VISITOR_KEEPALIVE_MS: 60_000,
  /**
   * Maximum idle time of a visitor's connection before the next request.
   * @limit visitors: HTTP connection, idle time without a request | the connection is closed
   */
  HTTP_KEEP_ALIVE_MS: 75_000,
  /**
   * Maximum time in which a visitor reads no byte of a pending response. The longest gaps of a poor mobile network are far shorter.
   * @limit visitors: HTTP response, time without the visitor reading a byte | the connection is reset
   */
  HTTP_SEND_TIMEOUT_MS: 300_000,
  /**
   * Maximum time without a byte in either direction while the local service does not read an upload. Both sides are reset afterwards.
   * @limit visitors: HTTP upload, time without the local service reading a byte | the connection is reset on both sides
   */
  HTTP_STALLED_BODY_MS: 300_000,
  /** Time for a visitor to read the rest of the last response and to close the connection. */
  HTTP_LINGER_MS: 2_000,
  /** Maximum idle time of an open connection to a local service before reuse. Most services close idle connections after 5 s. */
  HTTP_IDLE_STREAM_MS: 4_000,
  /** Flow-control window of an HTTP/2 stream: maximum body bytes in transit while the receiver does not read. */
  HTTP2_STREAM_WINDOW_BYTES: 256 * KiB,
  /**
   * Maximum size of an HTTP/2 request head. The stream is reset if the head is larger. The limit is above the limit for HTTP/1.1, so that
   * a head too large for HTTP/1.1 gets a 431 response.
   * @limit visitors: HTTP/2 request head, size | the request is reset
   */
  HTTP2_HEAD_MAX_BYTES: 64 * KiB,
  /** Maximum header fields of an HTTP/2 request. The stream is reset if a request has more fields. */
  HTTP2_FIELDS_MAX: 256,
  /** Maximum memory that Node.js uses for an HTTP/2 connection. Above the limit, new streams are rejected. */
  HTTP2_SESSION_MEMORY_BYTES: 16 * MiB,
  /** Maximum captured requests kept per tunnel for viewing and replay. */
  CAPTURES_PER_TUNNEL: CAPTURES_KEPT_MAX,
  /**
   * Maximum captured bytes of a body, from its beginning. Sufficient for most bodies that a person reads or replays.
   * @limit dashboard: Captured body of a request or response, size | only the beginning is captured; the request cannot be replayed
   */
  CAPTURE_BODY_MAX_BYTES: 16 * KiB,
  /** Timeout of an alert, from the DNS lookup to the response head. Alerts are not retried. */
  ALERT_TIMEOUT_MS: 5000,
  /** Maximum size of a response from the platform to a request of the edge. */
  PLATFORM_ANSWER_MAX_BYTES: 256 * KiB,
  /** Maximum accepted keys in the cache, enough for a key per session. The oldest keys are evicted first. */
  KNOWN_KEYS_MAX: 20_000,
} as const;
