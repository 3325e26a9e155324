// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const LIMITS = {
  /**
   * Of a request to the API.
   * @limit api: Request body, size (platform) | 413 `API_BODY_TOO_LARGE`
   */
  BODY_MAX_BYTES: 64 * KiB,
  /** What requests under way get to finish when the process stops. */
  HTTP_STOP_GRACE_MS: 2000,
  /** Names that one transaction ends. */
  NAMES_ROWS: 500,
  /** A look that its process did not live to judge is begun again after so long. */
  DOMAIN_CLAIM_MS: 60_000,
  /** Edges heard within this time are asked for pools. */
  EDGE_RECENT_MS: 60_000,
  /** Edges whose questions are counted, and of which is said once that their link is in clear. */
  LINK_EDGES_MAX: 2000,
  /** Rows that one statement of a clean-up deletes. */
  CLEAN_UP_ROWS: 5000,
  /**
   * An access token cannot be taken back, so it lives for a short time.
   * @limit accounts: Access token, lifetime | 401 `ACCESS_TOKEN_INVALID`; use the refresh token
   */
  ACCESS_TOKEN_SECS: 15 * 60,
  /**
   * A session ends after this time without use.
   * @limit accounts: Session, idle time | the session ends
   */
  REFRESH_TOKEN_SECS: 30 * 24 * 60 * 60,
  /** Two tabs, or an answer that was lost: the old token still works for so long, so many times. */
  REFRESH_GRACE_MS: 10_000,
  /** How often the old token still works in that time. */
  REFRESH_GRACE_USES: 5,
  /**
   * How long the link of a verification mail works.
   * @limit accounts: Verification link, lifetime | the link has expired
   */
  VERIFY_TOKEN_MS: 24 * 60 * 60_000,
  /** Accounts whose state is known without asking the database. */
  KNOWN_USERS_MAX: 20_000,
  /** Edges are told again when tunnels of an account over its cap are still open after so long. */
  CAP_CLOSED_AGAIN_MS: 30_000,
  /** Of a webhook of the payment processor. */
  WEBHOOK_BODY_MAX_BYTES: MiB,
  /**
   * A request with the same key gets the same answer for so long.
   * @limit api: Idempotency-Key, lifetime | the request is carried out again
   */
  IDEMPOTENCY_KEPT_MS: 24 * 60 * 60_000,
} as const;
