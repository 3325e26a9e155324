// Limits shared by several files of this package or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const CLIENT_LIMITS = {
  /** Maximum pause between attempts of the first start, so that several attempts fit into its 30 s. */
  FIRST_CONNECT_RETRY_MAX_MS: 5000,
  /** Timeout of a tunnel's registration while the edge answers no other registration. */
  REGISTER_TIMEOUT_MS: 15_000,
  /** Timeout of a proxy: connect, TLS if used, and the proxy's response, before the server is contacted. */
  PROXY_DIAL_TIMEOUT_MS: 15_000,
  /** Age after which a slot is free if its owner cannot be looked up. */
  FOREIGN_SLOT_STALE_AFTER_MS: 180_000,
  /** Interval of the client's connection checks. Silence is judged as of the next check. */
  CLIENT_TICK_MS: 1000,
  /**
   * Maximum number of concurrent UDP flows of one client, with one socket per flow.
   * @limit tunnels: UDP flows per client | `CLIENT_FLOW_LIMIT`; new visitors are rejected
   */
  FLOWS_MAX: 10_000,
  /** Maximum bytes of a flow's datagrams not yet accepted by the kernel. Further datagrams are dropped. */
  FLOW_BACKLOG_MAX_BYTES: 256 * KiB,
  /**
   * Receive buffer requested for datagrams from a local service to one flow; the system may grant less. Holds 400 ms at 20 Mbit/s, for
   * moments when the client is busy.
   */
  FLOW_RECEIVE_BUFFER_BYTES: 1 * MiB,
  /** Captured bytes of a body, from its start. A longer request cannot be replayed. */
  INSPECTOR_BODY_MAX_BYTES: 16 * KiB,
} as const;
