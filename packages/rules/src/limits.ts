// Limits shared by several files of this package or with other packages.

export const RULE_LIMITS = {
  /**
   * Maximum length of a group name, the same as of a tunnel name.
   * @limit tunnels: Group name, length | `GROUP_NAME_INVALID`
   */
  GROUP_NAME_MAX_CHARS: 100,
  /**
   * Maximum names that an account holds by use. Beyond it the least recently used name is released.
   * @limit tunnels: Names held per account after use | the least recently used name is released
   */
  HELD_NAMES_PER_ACCOUNT_MAX: 100,
  /** Maximum length of an e-mail address (RFC 5321). */
  EMAIL_MAX_CHARS: 254,
  /**
   * Maximum length of a password in bytes of UTF-8, which limits the work of hashing.
   * @limit accounts: Password, maximum length | 400 `API_BAD_REQUEST`
   */
  PASSWORD_MAX_BYTES: 1024,
  /** Maximum length of an OAuth client id or redirect URI that browsers and servers handle reliably. */
  OAUTH_URI_MAX_CHARS: 2000,
  /**
   * Minimum length of a p2p secret in bytes of UTF-8. The edge knows the SHA-256 of the secret and must not be able to guess it.
   * @limit tunnels: p2p secret, minimum length | `CLIENT_P2P_SECRET_SHORT`
   */
  P2P_SECRET_MIN_BYTES: 16,
  /**
   * Maximum length of a p2p secret in bytes of UTF-8. A longer value is probably the wrong file.
   * @limit tunnels: p2p secret, maximum length | `CLIENT_P2P_SECRET_LONG`
   */
  P2P_SECRET_MAX_BYTES: 1024,
  /** Number of health transitions kept per tunnel; the oldest are dropped first. */
  HEALTH_HISTORY_MAX: 50,
  /** Maximum size of a visitor's ClientHello; a connection with a longer one is closed. With post-quantum keys a ClientHello has 1.5 KB. */
  TLS_HELLO_MAX_BYTES: 16_384,
  /**
   * Maximum certificates for single names below the edge's domain within CERTIFICATE_NAMES_WINDOW_MS. Let's Encrypt issues 50 per
   * registered domain.
   * @limit operator: Certificates for single names of the server within 7 days | further orders wait
   */
  CERTIFICATE_NAMES_MAX: 40,
  /** Time window in which an account's certificates for single names are counted. */
  CERTIFICATE_NAMES_WINDOW_MS: 7 * 24 * 3_600_000,
} as const;
