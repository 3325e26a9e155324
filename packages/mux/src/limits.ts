// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const MUX_LIMITS = {
  /** the first credit while memory is short: a stream always moves */
  STREAM_WINDOW_FLOOR_BYTES: 16 * KiB,
  /** the first credit: enough for most answers in one round trip */
  STREAM_WINDOW_INITIAL_BYTES: 256 * KiB,
  /** the local dial and the way there and back; longer than LOCAL_DIAL_TIMEOUT_MS, so that the client says why first */
  STREAM_OPEN_TIMEOUT_MS: 15_000,
  /** how long a visitor waits for a carrier of a client that has just come back */
  CARRIER_WAIT_MS: 3_000,
  /** bytes that the streams of one session may have us hold; over it windows stop growing */
  SESSION_BUDGET_BYTES: 64 * MiB,
  /** a carrier that we closed waits this long for the end of the peer */
  CARRIER_LINGER_MS: 2_000,
  /** the largest payload of a datagram on a UDP path: 1,437 bytes on the wire with IPv4. Larger ones take the carrier */
  DATAGRAM_PATH_PAYLOAD_BYTES: 1372,
  /** a key seals no more (RFC 9001, section 6.6, for packets of this size); the edge gives new keys at half of it */
  SEALED_PACKETS_PER_KEY: 2 ** 28,
  /** PINGs whose PONG is still waited for; the oldest is forgotten */
  PATH_PINGS_UNANSWERED_MAX: 32,
  /** PINGs of one path that are answered in a second, and at once at most twice as many */
  PATH_PINGS_ANSWERED_PER_SECOND: 50,
  /** the shared buffer that idle and slow sockets are read into */
  SOCKET_SCRATCH_BYTES: 64 * KiB,
  /** the own buffer of a socket that moves much */
  SOCKET_BULK_BUFFER_BYTES: 256 * KiB,
  /** the same, and of one read, while small messages pass */
  READ_TURN_SHARED_BYTES: 128 * KiB,
  /** tries in a row; nearly all that succeed do so at the first */
  PATH_TRIES: 3,
  /** how long a try lasts: an answer that needs longer is of no use to anybody */
  PATH_TRY_MS: 3000,
  /** the beginning of a try, in which probes are dense: both sides must send while the other does */
  PATH_DENSE_MS: 500,
  /** between probes at the beginning of a try */
  PATH_DENSE_EVERY_MS: 50,
  /** between probes in the rest of it */
  PATH_THIN_EVERY_MS: 250,
  /** in use and without an answer for so long: a ping. With the doubt, silence costs 4 s: below the 5 s that are promised */
  PATH_USED_QUIET_MS: 2000,
  /** the same of an idle path: 12 s of the 15 that are promised. Also what keeps a NAT from forgetting it, the quickest after 20 s */
  PATH_IDLE_QUIET_MS: 10_000,
  /** of pings without an answer, then it is left */
  PATH_DOUBT_MS: 2000,
  /** between those pings: twenty, so that neither loss nor a flood in one’s own buffers ends a path that works */
  PATH_DOUBT_PING_EVERY_MS: 100,
  /** pings that were sent before it may be left, however late the process was */
  PATH_DOUBT_PINGS_MIN: 2,
  /** a path that held so long was good: the pauses begin anew */
  PATH_STABLE_MS: 10_000,
  /** the pause after the first round in vain, or after silence */
  PATH_RETRY_FIRST_MS: 5000,
  /** after the second */
  PATH_RETRY_SECOND_MS: 30_000,
  /** after the third */
  PATH_RETRY_THIRD_MS: 120_000,
  /** after each later one: for ever, since networks change without telling */
  PATH_RETRY_LATER_MS: 600_000,
} as const;
