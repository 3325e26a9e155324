// Limits shared by several files of this package or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const BRIDGE_LIMITS = {
  /**
   * Maximum size of one message from a caller or from the server. Larger messages are rejected; other messages are unaffected.
   * @limit mcp: Published server: message, size | the message is rejected
   */
  MESSAGE_MAX_BYTES: 1 * MiB,
  /**
   * Maximum concurrent calls to the server, from all callers together. Further callers are told to retry.
   * @limit mcp: Published server: concurrent calls | 429 with Retry-After
   */
  CALLS_MAX: 32,
} as const;
