// Bounds shared by several files of this package, or with other packages.
import { CAPTURES_KEPT_MAX } from '@tunnel/contract';

const KiB = 1024;
const MiB = 1024 * KiB;

export const EDGE_LIMITS = {
  /** how often the edge looks for what has become due: pings, dead carriers, held ports */
  SESSION_TICK_MS: 1000,
  /** connections the system accepts on our behalf while we are busy */
  VISITOR_BACKLOG: 4096,
  /** bytes of a visitor that wait until the local connection is open */
  PRECONNECT_BUFFER_BYTES: 64 * KiB,
  /** TCP keep-alive towards visitors: one that vanished is noticed some minutes later */
  VISITOR_KEEPALIVE_MS: 60_000,
  /**
   * how long a visitor may take to the next request on the same connection
   * @limit visitors: HTTP connection, idle time without a request | the connection is closed
   */
  HTTP_KEEP_ALIVE_MS: 75_000,
  /**
   * a visitor that takes no byte of its answer for so long while bytes wait is reset; the largest gap of a poor mobile network is far below
   * @limit visitors: HTTP response, time without the visitor reading a byte | the connection is reset
   */
  HTTP_SEND_TIMEOUT_MS: 300_000,
  /**
   * an upload that its service does not take: without a byte either way for so long both sides are reset
   * @limit visitors: HTTP upload, time without the local service reading a byte | the connection is reset on both sides
   */
  HTTP_STALLED_BODY_MS: 300_000,
  /** after our last word the visitor has this long to read it and to close */
  HTTP_LINGER_MS: 2_000,
  /** how long such a connection waits; most services hang up after 5 s */
  HTTP_IDLE_STREAM_MS: 4_000,
  /** of one request body, what may be on its way while the service does not read */
  HTTP2_STREAM_WINDOW_BYTES: 256 * KiB,
  /**
   * a head above this resets its stream; it leaves room to answer 431 to one that is too large for HTTP/1.1
   * @limit visitors: HTTP/2 request head, size | the request is reset
   */
  HTTP2_HEAD_MAX_BYTES: 64 * KiB,
  /** header fields; above this the stream is reset, as with the size */
  HTTP2_FIELDS_MAX: 256,
  /** what node may hold for one connection; over it new streams are refused */
  HTTP2_SESSION_MEMORY_BYTES: 16 * MiB,
  /** the last requests of a tunnel that are kept for a look and a replay */
  CAPTURES_PER_TUNNEL: CAPTURES_KEPT_MAX,
  /**
   * of each body, from its beginning: most of what a person reads, and of what can be sent again
   * @limit dashboard: Captured body of a request or response, size | only the beginning is captured; the request cannot be replayed
   */
  CAPTURE_BODY_MAX_BYTES: 16 * KiB,
  /** of one alert, from the look-up of its name to the head of the answer; there is no second try */
  ALERT_TIMEOUT_MS: 5000,
  /** no answer of the platform is longer */
  PLATFORM_ANSWER_MAX_BYTES: 256 * KiB,
  /** accepted keys that are remembered, one for each session there can be; the oldest go first */
  KNOWN_KEYS_MAX: 20_000,
} as const;
