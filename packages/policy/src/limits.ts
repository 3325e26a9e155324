// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;

export const POLICY_BOUNDS = {
  /**
   * how long a login may take from the first redirect to the last; the cookie that carries it lives as long
   * @limit policies: Sign-in, time to complete | 400 `POLICY_LOGIN_STATE`
   */
  POLICY_PENDING_LOGIN_SECS: 600,
  /**
   * a page or an answer that stands in a policy, in UTF-8
   * @limit policies: Page or response body in a policy, size | `POLICY_INVALID`
   */
  POLICY_BODY_MAX_BYTES: 16 * KiB,
  /**
   * a token of programs: enough that nobody finds one by trying
   * @limit policies: Token, minimum length | `POLICY_INVALID`
   */
  POLICY_TOKEN_MIN_CHARS: 20,
  /** and short enough for a header */
  POLICY_TOKEN_MAX_CHARS: 512,
} as const;
