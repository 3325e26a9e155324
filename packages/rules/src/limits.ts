// Bounds shared by several files of this package, or with other packages.

export const RULE_LIMITS = {
  /**
   * as of a tunnel
   * @limit tunnels: Group name, length | `GROUP_NAME_INVALID`
   */
  GROUP_NAME_MAX_CHARS: 100,
  /**
   * names that an account has by use alone; the one unused for longest is released then
   * @limit tunnels: Names held per account after use | the least recently used name is released
   */
  HELD_NAMES_PER_ACCOUNT_MAX: 100,
  /** a whole address (RFC 5321) */
  EMAIL_MAX_CHARS: 254,
  /**
   * of UTF-8: bounds the work of a hash
   * @limit accounts: Password, maximum length | 400 `API_BAD_REQUEST`
   */
  PASSWORD_MAX_BYTES: 1024,
  /** of a client id and of a redirect URI: what browsers and servers carry without trouble */
  OAUTH_URI_MAX_CHARS: 2000,
  /**
   * of UTF-8: the edge holds the SHA-256 of a secret, and must not find it by trying
   * @limit tunnels: p2p secret, minimum length | `CLIENT_P2P_SECRET_SHORT`
   */
  P2P_SECRET_MIN_BYTES: 16,
  /**
   * of UTF-8: more is a file that was not meant
   * @limit tunnels: p2p secret, maximum length | `CLIENT_P2P_SECRET_LONG`
   */
  P2P_SECRET_MAX_BYTES: 1024,
  /** transitions of one tunnel’s health that are kept, the oldest go first */
  HEALTH_HISTORY_MAX: 50,
  /** of a visitor (ClientHello); a longer one is closed. Those with keys that are safe from quantum computers have 1.5 KB */
  TLS_HELLO_MAX_BYTES: 16_384,
  /**
   * certificates of single names below the domain within the window below; the best known authority gives 50 a registered domain
   * @limit operator: Certificates for single names of the server within 7 days | further orders wait
   */
  CERTIFICATE_NAMES_MAX: 40,
  /** the window in which those are counted */
  CERTIFICATE_NAMES_WINDOW_MS: 7 * 24 * 3_600_000,
} as const;
