// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const BRIDGE_LIMITS = {
  /**
   * one message, from a caller and from the server; a larger one is refused, and the others go on
   * @limit mcp: Published server: message, size | the message is rejected
   */
  MESSAGE_MAX_BYTES: 1 * MiB,
  /**
   * calls under way at the server, of all callers together; more are told to come back
   * @limit mcp: Published server: concurrent calls | 429 with Retry-After
   */
  CALLS_MAX: 32,
} as const;
