// Limits used by several files of this package or by other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const WIRE_LIMITS = {
  /**
   * Maximum size of a control message. A policy has up to 48 KiB, other messages a few KiB. Limits memory held for unauthenticated peers.
   */
  CONTROL_FRAME_MAX_BYTES: 64 * KiB,
  /** Maximum length of an API key. The client refuses to send longer values, because they come from a wrong file. */
  CONTROL_TOKEN_MAX_CHARS: 512,
  /** Maximum length of a client's computer name, to fit in a table column. */
  CLIENT_NAME_MAX_CHARS: 64,
  /** Queue size at which a control connection is closed, because the peer does not read. */
  CONTROL_SEND_QUEUE_MAX_BYTES: 1 * MiB,
  /** Time for authentication after connecting. The client waits as long for the answer. */
  CONTROL_AUTH_TIMEOUT_MS: 10_000,
  /** Interval between pings on a control connection. Two pings fit into CONTROL_DEAD_AFTER_MS. */
  CONTROL_PING_INTERVAL_MS: 10_000,
  /**
   * Silence after which either side treats the connection as lost.
   * @limit tunnels: Client connection, silence before the connection counts as lost | `CONTROL_DEAD`; the client reconnects
   */
  CONTROL_DEAD_AFTER_MS: 25_000,
  /** Timeout of the client for a control connection: connect, TLS and WebSocket upgrade together. */
  CONTROL_HANDSHAKE_TIMEOUT_MS: 10_000,
  /** EdgeAnswered messages per second and tunnel. Further requests are reported as a count. */
  EDGE_ANSWERS_PER_SECOND: 20,
  /** Maximum length of the request path in EdgeAnswered. The edge cuts longer paths. */
  EDGE_ANSWERED_PATH_MAX_CHARS: 500,
  /** Maximum length of the request method in EdgeAnswered. The edge cuts longer methods. */
  EDGE_ANSWERED_METHOD_MAX_CHARS: 32,
  /**
   * Maximum number of service names in a registration.
   * @limit policies: Services per tunnel | `POLICY_INVALID`
   */
  REGISTER_SERVICES_MAX: 16,
  /** Size of a frame header: type, length and stream id. */
  FRAME_HEADER_BYTES: 8,
  /** Maximum DATA payload, the size of a read buffer. Larger frames would delay other streams of the carrier. */
  FRAME_DATA_MAX_BYTES: 256 * KiB,
  /** Maximum payload of frames other than DATA, because such frames are buffered whole. */
  FRAME_CONTROL_MAX_BYTES: 4 * KiB,
  /** Maximum UDP payload over IPv4. */
  DATAGRAM_MAX_BYTES: 65_507,
  /** Maximum number of rows in DatagramDrops, about 10 KB. Further rows follow in the next message. */
  DATAGRAM_DROPS_PER_MESSAGE: 100,
  /** Maximum length of a local service's name, in visible ASCII. */
  OPEN_SERVICE_MAX_CHARS: 32,
  /** Maximum window of a stream: 1 Gbit/s over a path of 130 ms. More credit is a protocol violation. */
  STREAM_WINDOW_MAX_BYTES: 16 * MiB,
  /** Maximum number of carriers per session, including carriers that only finish their streams. */
  CARRIERS_PER_SESSION_MAX: 16,
  /** Maximum number of unused tokens per session. Further tokens invalidate the oldest. */
  CARRIER_TOKENS_OUTSTANDING_MAX: 32,
} as const;
