// Limits used by several files of this package or by other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const MUX_LIMITS = {
  /** Initial window of a stream while memory is short. Never zero, so that every stream makes progress. */
  STREAM_WINDOW_FLOOR_BYTES: 16 * KiB,
  /** Initial window of a stream. Large enough to send most responses in one round trip. */
  STREAM_WINDOW_INITIAL_BYTES: 256 * KiB,
  /**
   * Timeout for opening a stream: local dial plus one round trip. Longer than LOCAL_DIAL_TIMEOUT_MS, so that the client can report the
   * reason first.
   */
  STREAM_OPEN_TIMEOUT_MS: 15_000,
  /** How long a visitor waits for a carrier of a client that has just reconnected. */
  CARRIER_WAIT_MS: 3_000,
  /** Memory for received data of all streams in a session. Windows stop growing when the limit is reached. */
  SESSION_BUDGET_BYTES: 64 * MiB,
  /** How long a carrier closed by us waits for the peer to close its side. */
  CARRIER_LINGER_MS: 2_000,
  /** Largest datagram payload on a UDP path: 1,437 bytes on the wire with IPv4. Larger datagrams use the carrier. */
  DATAGRAM_PATH_PAYLOAD_BYTES: 1372,
  /**
   * Maximum number of packets sealed with a key (RFC 9001, section 6.6, for packets of this size). The edge rotates keys at half of the
   * limit.
   */
  SEALED_PACKETS_PER_KEY: 2 ** 28,
  /** Maximum number of PINGs waiting for their PONG. The oldest is dropped first. */
  PATH_PINGS_UNANSWERED_MAX: 32,
  /** Maximum number of PINGs answered per second on a UDP path. Bursts can be twice as large. */
  PATH_PINGS_ANSWERED_PER_SECOND: 50,
  /** Size of the shared buffer for reads from idle and slow sockets. */
  SOCKET_SCRATCH_BYTES: 64 * KiB,
  /** Size of the dedicated read buffer of a busy socket. */
  SOCKET_BULK_BUFFER_BYTES: 256 * KiB,
  /** Maximum bytes of a read, and of a read turn, while small messages pass through the process. */
  TICK_READ_SHARED_BYTES: 128 * KiB,
  /** Attempts in a round. Nearly every path that works opens at the first attempt. */
  PATH_TRIES: 3,
  /** Duration of an attempt. A path that takes longer to answer would be too slow to use. */
  PATH_TRY_MS: 3000,
  /** First phase of an attempt, with frequent probes: hole punching needs both sides to send at the same time. */
  PATH_DENSE_MS: 500,
  /** Interval between probes of a UDP path in the first phase of an attempt. */
  PATH_DENSE_EVERY_MS: 50,
  /** Interval between probes of a UDP path in the rest of an attempt. */
  PATH_THIN_EVERY_MS: 250,
  /**
   * Silence on a path in use before a ping is sent. Together with PATH_DOUBT_MS a dead path is detected after 4 s; the documented limit is
   * 5 s.
   */
  PATH_USED_QUIET_MS: 2000,
  /**
   * Silence on an idle path before a ping is sent. A dead path is detected after 12 s; the documented limit is 15 s. The pings also keep
   * NAT bindings alive, of which the shortest expire after 20 s.
   */
  PATH_IDLE_QUIET_MS: 10_000,
  /** How long pings on a UDP path can stay unanswered before the path is abandoned. */
  PATH_DOUBT_MS: 2000,
  /**
   * Interval between pings on a doubtful path: 20 pings in total, so that neither packet loss nor full local buffers end a working path.
   */
  PATH_DOUBT_PING_EVERY_MS: 100,
  /** Minimum number of pings sent before a path is abandoned, even if the process was delayed. */
  PATH_DOUBT_PINGS_MIN: 2,
  /** A path that lasted this long counts as stable: retry pauses start again with the shortest. */
  PATH_STABLE_MS: 10_000,
  /** Pause after the first failed round of probes for a UDP path, or after a path went silent. */
  PATH_RETRY_FIRST_MS: 5000,
  /** Pause after the second failed round of probes for a UDP path. */
  PATH_RETRY_SECOND_MS: 30_000,
  /** Pause after the third failed round of probes for a UDP path. */
  PATH_RETRY_THIRD_MS: 120_000,
  /** Pause after every later failed round. Retries never stop, because networks change without notice. */
  PATH_RETRY_LATER_MS: 600_000,
} as const;
