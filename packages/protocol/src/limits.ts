// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const WIRE_LIMITS = {
  /** a policy has 48 KiB, all other honest messages a few; a stranger cannot make us hold more */
  CONTROL_FRAME_MAX_BYTES: 64 * KiB,
  /** a key is well below this; a client takes anything longer for a wrong file and does not send it */
  CONTROL_TOKEN_MAX_CHARS: 512,
  /** what a client calls its computer, in a column of a list */
  CLIENT_NAME_MAX_CHARS: 64,
  /** a peer that does not read its control messages is closed instead of filling memory */
  CONTROL_SEND_QUEUE_MAX_BYTES: 1 * MiB,
  /** a connection that does not say who it is gets no longer than this; the client waits as long for the answer */
  CONTROL_AUTH_TIMEOUT_MS: 10_000,
  /** two pings fit into the time after which a silent peer counts as dead */
  CONTROL_PING_INTERVAL_MS: 10_000,
  /**
   * a link that went silent without closing is noticed within this time, on both sides
   * @limit tunnels: Client connection, silence before the connection counts as lost | `CONTROL_DEAD`; the client reconnects
   */
  CONTROL_DEAD_AFTER_MS: 25_000,
  /** connect, TLS and WebSocket upgrade together, as seen by the client */
  CONTROL_HANDSHAKE_TIMEOUT_MS: 10_000,
  /** requests of one tunnel that the edge answered itself, told one by one; the rest is told as a number */
  EDGE_ANSWERS_PER_SECOND: 20,
  /** length of the path in an EdgeAnswered message; the edge cuts a longer path */
  EDGE_ANSWERED_PATH_MAX_CHARS: 500,
  /** length of the method in an EdgeAnswered message; the edge cuts a longer method */
  EDGE_ANSWERED_METHOD_MAX_CHARS: 32,
  /**
   * names of services in a registration
   * @limit policies: Services per tunnel | `POLICY_INVALID`
   */
  REGISTER_SERVICES_MAX: 16,
  /** type, length and stream id */
  FRAME_HEADER_BYTES: 8,
  /** one read buffer; larger frames would keep other streams of the carrier waiting */
  FRAME_DATA_MAX_BYTES: 256 * KiB,
  /** frames other than DATA are gathered before they are read, so they must be small */
  FRAME_CONTROL_MAX_BYTES: 4 * KiB,
  /** the most that UDP over IPv4 carries */
  DATAGRAM_MAX_BYTES: 65_507,
  /** rows of one DatagramDrops: some 10 KB; the others follow */
  DATAGRAM_DROPS_PER_MESSAGE: 100,
  /** a name of the client’s own table, of visible ASCII */
  OPEN_SERVICE_MAX_CHARS: 32,
  /** 1 Gbit/s over a path of 130 ms; more credit than this at once is a violation */
  STREAM_WINDOW_MAX_BYTES: 16 * MiB,
  /** carriers of one session, including carriers that finish their last streams */
  CARRIERS_PER_SESSION_MAX: 16,
  /** unused tokens of one session; over it the oldest stop being valid */
  CARRIER_TOKENS_OUTSTANDING_MAX: 32,
} as const;
