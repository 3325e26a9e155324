// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const CLIENT_LIMITS = {
  /** attempts of the first start come at least this often, so that its 30 s hold several */
  FIRST_CONNECT_RETRY_MAX_MS: 5000,
  /** how long the answer to a registration is awaited while the edge answers no other one */
  REGISTER_TIMEOUT_MS: 15_000,
  /** a proxy: connect, TLS if it speaks it, and its answer, before anything is said to the server */
  PROXY_DIAL_TIMEOUT_MS: 15_000,
  /** a slot whose owner cannot be looked up is free after this */
  FOREIGN_SLOT_STALE_AFTER_MS: 180_000,
  /** how often the client looks after its connections; silence is judged as of the next look */
  CLIENT_TICK_MS: 1000,
  /**
   * udp: flows of one client at once, a socket each
   * @limit tunnels: UDP flows per client | `CLIENT_FLOW_LIMIT`; new visitors are rejected
   */
  FLOWS_MAX: 10_000,
  /** datagrams of one flow that the kernel has not taken yet; over it they are dropped */
  FLOW_BACKLOG_MAX_BYTES: 256 * KiB,
  /** asked of the system for what a local service sends to one flow; it may give less. 400 ms at 20 Mbit/s, for a client that is busy for a moment */
  FLOW_RECEIVE_BUFFER_BYTES: 1 * MiB,
  /** the beginning of a body that is kept for a look; a longer request cannot be replayed */
  INSPECTOR_BODY_MAX_BYTES: 16 * KiB,
} as const;
