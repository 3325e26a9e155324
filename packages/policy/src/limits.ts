// Limits shared by several files of this package or with other packages.

const KiB = 1024;

export const POLICY_BOUNDS = {
  /**
   * Time for a sign-in from the first to the last redirect, and lifetime of its cookie.
   * @limit policies: Sign-in, time to complete | 400 `POLICY_LOGIN_STATE`
   */
  POLICY_PENDING_LOGIN_SECS: 600,
  /**
   * Maximum size of a page or response body in a policy, in bytes of UTF-8.
   * @limit policies: Page or response body in a policy, size | `POLICY_INVALID`
   */
  POLICY_BODY_MAX_BYTES: 16 * KiB,
  /**
   * Minimum length of an access token, so that tokens cannot be guessed.
   * @limit policies: Token, minimum length | `POLICY_INVALID`
   */
  POLICY_TOKEN_MIN_CHARS: 20,
  /** Maximum length of an access token, so that it fits into a header field. */
  POLICY_TOKEN_MAX_CHARS: 512,
} as const;
