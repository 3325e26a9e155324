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
} as const;
