// Every bound of a peer session, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const PEER_LIMITS = {
  // --- the sealed carrier ---
  /** what Noise allows a message to be; the length in front of it has two bytes */
  PEER_RECORD_MAX_BYTES: 65_535,
  /** a handshake message with its hello; a stranger cannot make us hold more */
  PEER_HANDSHAKE_MAX_BYTES: 1 * KiB,
  /** two messages through the relay; longer than an edge takes to open a stream to a slow publisher */
  PEER_HANDSHAKE_TIMEOUT_MS: 10_000,
  /** a word between the two programs: candidates, keys of a try, the reason of an end */
  PEER_MESSAGE_MAX_BYTES: 8 * KiB,
  /** records under one AES-GCM key (NIST SP 800-38D, section 8.3) */
  PEER_RECORDS_PER_KEY_MAX: 2 ** 32,
  /** from here on streams wait before they send more DATA */
  PEER_SEND_QUEUE_BYTES: 512 * KiB,
  /** small frames of a peer that does not read; over it the carrier is closed */
  PEER_SEND_QUEUE_MAX_BYTES: 8 * MiB,

  // --- the direct path ---
  /** read from a direct connection and not taken; its owner has credit of its own and never comes near it */
  PEER_TRANSPORT_UNREAD_MAX_BYTES: 4 * MiB,
  /** asked of the kernel for the socket of a direct path; it gives what net.core.rmem_max allows */
  PEER_SOCKET_BUFFER_BYTES: 4 * MiB,
  /** addresses that one side offers; more would only be probes into the dark */
  PEER_CANDIDATES_MAX: 8,
  /** addresses that probes of one round go to: those offered, and those that probes came from */
  PEER_PROBED_ADDRESSES_MAX: 16,
  /** probes whose answers are still awaited; older ones would be answered too late to say anything */
  PEER_PROBES_UNANSWERED_MAX: 1024,
  /** to each of the edge’s two ports, until it has answered */
  PEER_OBSERVE_PINGS: 6,
  /** between them: six take longer than the way to a distant edge, and leave time to punch within 3 s */
  PEER_OBSERVE_PING_EVERY_MS: 200,
  /** a question that has to wait, since many sockets ask at once, ends then */
  PEER_OBSERVE_MAX_MS: 10_000,
  /** of send(): datagrams over it are dropped, since later they are worth less. 256 KiB of them */
  PEER_DATAGRAMS_QUEUED_MAX: 180,
  /** between looks at what the direct path carries; with its doubt, silence in use costs under 5 s */
  PEER_LOOK_EVERY_MS: 500,
  /** between looks at the addresses of this machine */
  PEER_ADDRESSES_LOOK_EVERY_MS: 10_000,
  /** the pause after a direct connection that was lost or is worn while its path still answered */
  PEER_LOST_RETRY_MS: 5_000,
  /** the pause after a direct path on which the handshake failed: the secret is not tried more often */
  PEER_HANDSHAKE_RETRY_MS: 30_000,
  /** a direct path that is closed for good has this long for its last words; permission that ends is felt within 2 s */
  PEER_GOODBYE_MS: 1_000,

  // --- peers of a publisher ---
  /** relay streams that have not proven the secret yet; over it new ones are refused */
  PEER_HANDSHAKES_MAX: 256,
  /** of one publisher; an edge allows 100 peers unless its operator says more */
  PEER_SESSIONS_MAX: 4096,
  /** a peer without any path is kept for its return */
  PEER_ABSENT_MS: 30_000,
} as const;
