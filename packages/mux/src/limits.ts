// Every bound of sessions, streams and carriers, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const MUX_LIMITS = {
  // --- streams and their windows ---
  /** open at once; bounds the tables of both sides */
  STREAMS_PER_CARRIER: 65_536,
  /** the first credit while memory is short: a stream always moves */
  STREAM_WINDOW_FLOOR_BYTES: 16 * KiB,
  /** the first credit: enough for most answers in one round trip */
  STREAM_WINDOW_INITIAL_BYTES: 256 * KiB,
  /** while a round trip takes under 20 ms a window does not grow before this has passed: less may lie in the kernel of a peer that never reads */
  STREAM_WINDOW_GROWS_AFTER_BYTES: 8 * MiB,
  /** the largest window while a round trip takes under 5 ms; more would only stand in front of small frames */
  STREAM_WINDOW_SHORT_PATH_BYTES: 4 * MiB,
  /** the same under 1 ms while small messages pass: what is in flight keeps both processes from them */
  STREAM_WINDOW_SHARED_BYTES: 512 * KiB,
  /** the local dial and the way there and back; longer than LOCAL_DIAL_TIMEOUT_MS, so that the client says why first */
  STREAM_OPEN_TIMEOUT_MS: 15_000,
  /** visitors of one session that wait for a carrier at once */
  OPENS_WAITING_MAX: 4096,
  /** how long a visitor waits for a carrier of a client that has just come back */
  CARRIER_WAIT_MS: 3_000,
  /** bytes that the streams of one session may have us hold; over it windows stop growing */
  SESSION_BUDGET_BYTES: 64 * MiB,
  /**
   * part of the machine’s memory that all sessions together may have us hold
   * @limit operator: Part of the machine's memory for bytes in tunnels | tunnels become slower
   */
  PROCESS_BUDGET_MEMORY_SHARE: 0.25,

  // --- datagrams ---
  /** later than the round trip alone by more than this they are dropped: for a game or a call late is worse than lost */
  DATAGRAM_BEHIND_MS: 100,
  /** how often at most a receiver says what it has taken */
  DATAGRAM_SEEN_INTERVAL_MS: 10,
  /** of a carrier's datagrams that are not seen yet, before it is known what it bears: 100 ms at 20 Mbit/s */
  DATAGRAM_UNSEEN_FIRST_BYTES: 256 * KiB,
  /** the same of one that was found slow: 100 ms at 2.6 Mbit/s, or a few datagrams */
  DATAGRAM_UNSEEN_FLOOR_BYTES: 32 * KiB,
  /** so much of it are a few questions: a machine that stands still for a moment keeps nobody out */
  DATAGRAM_UNSEEN_FEW_BYTES: 2 * KiB,
  /** the same of a fast one: 1 Gbit/s over a path of 130 ms; what of it the kernel does not take is bound by CARRIER_SEND_QUEUE_BYTES */
  DATAGRAM_UNSEEN_MAX_BYTES: 16 * MiB,
  /** of one flow, before somebody reads it; more are dropped */
  DATAGRAMS_BEFORE_READ: 8,
  /** the same in bytes */
  DATAGRAMS_BEFORE_READ_BYTES: 16 * KiB,

  // --- carriers ---
  /** also measures the round trip by which windows grow */
  CARRIER_PING_INTERVAL_MS: 10_000,
  /** one after the other at the start: the least of them is the path’s, the others are those of a busy machine */
  CARRIER_FIRST_PINGS: 8,
  /** a path whose round trip is shorter than this is near: neither a loss nor what a socket holds back lasts there */
  CARRIER_NEAR_UNDER_MS: 4,
  /** streams that share a carrier of a near path before the next one is taken */
  CARRIER_SHARED_STREAMS: 64,
  /** as on the control connection */
  CARRIER_DEAD_AFTER_MS: 25_000,
  /** a carrier that we closed waits this long for the end of the peer */
  CARRIER_LINGER_MS: 2_000,
  /** and as long again while the peer takes at least so much of the bytes that wait: a peer that reads a byte at a time would else hold them for days */
  CARRIER_LINGER_BYTES: 64 * KiB,
  /** small frames of one turn of the event loop leave in one write */
  CARRIER_BATCH_BYTES: 64 * KiB,
  /** from here on streams wait before they send more DATA */
  CARRIER_SEND_QUEUE_BYTES: 512 * KiB,
  /** small frames of a peer that does not read; over it the carrier is closed */
  CARRIER_SEND_QUEUE_MAX_BYTES: 8 * MiB,
  /** read buffers that slow sinks may keep; over it bytes are copied */
  CARRIER_PINNED_BUFFERS_MAX: 16,
  /** a TLS key is not used for more (RFC 8446, section 5.5); a fresh carrier takes its place */
  CARRIER_ROTATE_AFTER_BYTES: 256 * 1024 * MiB,
  /** the same by time */
  CARRIER_ROTATE_AFTER_MS: 24 * 3600 * 1000,

  // --- sealed packets over UDP ---
  /** the largest payload of a datagram on a UDP path: 1,437 bytes on the wire with IPv4. Larger ones take the carrier */
  DATAGRAM_PATH_PAYLOAD_BYTES: 1372,
  /** bytes that wait in a UDP socket; over it datagrams are dropped: node has no back-pressure there */
  DATAGRAM_PATH_SEND_QUEUE_BYTES: 256 * KiB,
  /** packets whose memory a UDP socket may still need; the same bound for small ones */
  DATAGRAM_PATH_SEND_QUEUE_PACKETS: 256,
  /** what a UDP socket asks the system for; it may give less, docs/operations.md names the setting */
  DATAGRAM_PATH_RECEIVE_BUFFER_BYTES: 4 * MiB,
  /** how far packets of a UDP path may overtake each other; older ones are dropped as if they were replayed */
  REPLAY_WINDOW_PACKETS: 1024,
  /** a key seals no more (RFC 9001, section 6.6, for packets of this size); the edge gives new keys at half of it */
  SEALED_PACKETS_PER_KEY: 2 ** 28,
  /** PINGs whose PONG is still waited for; the oldest is forgotten */
  PATH_PINGS_UNANSWERED_MAX: 32,
  /** PINGs of one path that are answered in a second, and at once at most twice as many */
  PATH_PINGS_ANSWERED_PER_SECOND: 50,

  // --- sockets ---
  /** the shared buffer that idle and slow sockets are read into */
  SOCKET_SCRATCH_BYTES: 64 * KiB,
  /** the own buffer of a socket that moves much */
  SOCKET_BULK_BUFFER_BYTES: 256 * KiB,
  /** own buffers at once; further sockets share */
  SOCKET_BULK_BUFFERS_MAX: 128,
  /** read of one busy socket before the others have their turn */
  READ_TURN_BYTES: 512 * KiB,
  /** the same, and of one read, while small messages pass */
  READ_TURN_SHARED_BYTES: 128 * KiB,
  /** between two small messages of a conversation, and behind its last one: then bulk takes large turns again */
  SMALL_MESSAGES_FOR_MS: 100,

  // --- the better path: UDP between client and edge, or between two peers ---
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
