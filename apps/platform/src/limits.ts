// Limits used in several files of this package, or shared with other packages.

const KiB = 1024;
const MiB = 1024 * KiB;

export const LIMITS = {
  /**
   * Maximum size of the body of an API request.
   * @limit api: Request body, size (platform) | 413 `API_BODY_TOO_LARGE`
   */
  BODY_MAX_BYTES: 64 * KiB,
  /** Time for running requests to finish when the process stops. */
  HTTP_STOP_GRACE_MS: 2000,
  /** Maximum number of names ended per transaction. */
  NAMES_ROWS: 500,
  /** Time after which another process may start a claimed domain check again, because the claiming process seems to have died. */
  DOMAIN_CLAIM_MS: 60_000,
  /** An edge counts as running if its last heartbeat is at most this old. Only running edges are asked for their groups. */
  EDGE_RECENT_MS: 60_000,
  /**
   * Maximum number of edges remembered per process: for the queue of edge calls, and to warn only once per edge about an unencrypted
   * link.
   */
  LINK_EDGES_MAX: 2000,
  /** Maximum number of rows deleted per statement of a cleanup. */
  CLEAN_UP_ROWS: 5000,
  /**
   * Lifetime of an access token. Short, because an access token cannot be revoked.
   * @limit accounts: Access token, lifetime | 401 `ACCESS_TOKEN_INVALID`; use the refresh token
   */
  ACCESS_TOKEN_SECS: 15 * 60,
  /**
   * Time without use after which a session ends.
   * @limit accounts: Session, idle time | the session ends
   */
  REFRESH_TOKEN_SECS: 30 * 24 * 60 * 60,
  /** Time for which a replaced refresh token still works, because two tabs may refresh at once and a response may get lost. */
  REFRESH_GRACE_MS: 10_000,
  /** Number of times a replaced refresh token still works within the grace period. */
  REFRESH_GRACE_USES: 5,
  /**
   * Lifetime of the link in a verification mail.
   * @limit accounts: Verification link, lifetime | the link has expired
   */
  VERIFY_TOKEN_MS: 24 * 60 * 60_000,
  /** Maximum number of accounts cached in memory, to avoid database queries for account states. */
  KNOWN_USERS_MAX: 20_000,
  /** Wait before edges are notified again about tunnels still open in an account over its cap. */
  CAP_CLOSED_AGAIN_MS: 30_000,
  /** Maximum size of the body of a webhook from the payment processor. */
  WEBHOOK_BODY_MAX_BYTES: MiB,
  /**
   * Requests with the same idempotency key get the same response for this time.
   * @limit api: Idempotency-Key, lifetime | the request is carried out again
   */
  IDEMPOTENCY_KEPT_MS: 24 * 60 * 60_000,
} as const;
