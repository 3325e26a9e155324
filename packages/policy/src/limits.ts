// Every bound of policies, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const POLICY_BOUNDS = {
  // --- logins of a tunnel's visitors ---
  /**
   * how long a login may take from the first redirect to the last; the cookie that carries it lives as long
   * @limit policies: Login under way, time to finish it | 400 `POLICY_LOGIN_STATE`
   */
  POLICY_PENDING_LOGIN_SECS: 600,
  /** logins under way in one browser: each has a cookie, and the oldest is dropped */
  POLICY_PENDING_LOGINS_MAX: 4,
  /** a longer path is not come back to with its query, or not at all: it travels in a cookie */
  POLICY_RETURN_PATH_MAX_CHARS: 2 * KiB,

  // --- policies ---
  /**
   * rules of one policy; each may be looked at for each request
   * @limit policies: Rules | `POLICY_INVALID`
   */
  POLICY_RULES_MAX: 100,
  /**
   * addresses and networks of one policy, all its lists together
   * @limit policies: Addresses and networks, of all rules | `POLICY_INVALID`
   */
  POLICY_NETWORKS_MAX: 1000,
  /**
   * names with a password in one policy
   * @limit policies: Users with a password | `POLICY_INVALID`
   */
  POLICY_USERS_MAX: 100,
  /**
   * tokens of one policy
   * @limit policies: Tokens | `POLICY_INVALID`
   */
  POLICY_TOKENS_MAX: 100,
  /**
   * e-mail addresses and domains of one policy, together
   * @limit policies: Email addresses and domains of logins | `POLICY_INVALID`
   */
  POLICY_PEOPLE_MAX: 500,
  /**
   * a policy as JSON in UTF-8; a control message, which holds more than that, has 64 KiB
   * @limit policies: Policy, size as JSON | `POLICY_INVALID`
   */
  POLICY_WIRE_MAX_BYTES: 48 * KiB,
  /**
   * texts, numbers, lists and tables of a policy as it is sent, all together: each is judged in the turn in which it comes
   * @limit policies: Values, of all rules | `POLICY_INVALID`
   */
  POLICY_VALUES_MAX: 5000,
  /**
   * a page or an answer that stands in a policy, in UTF-8
   * @limit policies: Page or response body in a policy, size | `POLICY_INVALID`
   */
  POLICY_BODY_MAX_BYTES: 16 * KiB,
  /** of a service’s name: it travels with each stream */
  POLICY_SERVICE_NAME_MAX_CHARS: 32,
  /** of a rule’s name: a word in a line of a trace */
  POLICY_RULE_NAME_MAX_CHARS: 60,
  /** of every text in a policy that has no bound of its own: globs, URLs, header values */
  POLICY_TEXT_MAX_CHARS: 2000,
  /** globs of one list, names of one list of headers, values of a claim */
  POLICY_LIST_MAX: 100,
  /** `not` within `not`: more says nothing that fewer do not say */
  POLICY_NOT_DEPTH_MAX: 8,
  /** requests that a rate limit may let through, and its burst */
  POLICY_RATE_REQUESTS_MAX: 1_000_000,
  /** a day: longer is a quota, which must outlive a restart */
  POLICY_RATE_PER_SECS_MAX: 86_400,
  /** the largest `max_body`: 1 TiB, which is as good as none */
  POLICY_MAX_BODY_BYTES: 1024 * 1024 * MiB,
  /** of a webhook’s body unless the rule says otherwise */
  POLICY_WEBHOOK_DEFAULT_BYTES: 1 * MiB,
  /**
   * the most that a rule may say: the body is held before the service sees a byte of it
   * @limit policies: Webhook body that can be verified, size | 413 `POLICY_BODY_TOO_LARGE`
   */
  POLICY_WEBHOOK_MAX_BYTES: 4 * MiB,
  /** how far the time that a webhook’s sender signed may be from ours, either way */
  POLICY_WEBHOOK_SKEW_SECS: 300,
  /** secrets of one webhook: the one in use and those that it replaces */
  POLICY_WEBHOOK_SECRETS_MAX: 10,
  /** bytes that one request’s signatures are computed over, of all rules and secrets together: some milliseconds; secrets beyond it are not tried */
  POLICY_HASHED_MAX_BYTES: 10 * MiB,
  /**
   * a token of programs: enough that nobody finds one by trying
   * @limit policies: Token, shortest | `POLICY_INVALID`
   */
  POLICY_TOKEN_MIN_CHARS: 20,
  /** and short enough for a header */
  POLICY_TOKEN_MAX_CHARS: 512,
  /** a login that is shorter sends people round and round */
  POLICY_SESSION_MIN_SECS: 60,
  /**
   * 30 days: a session cannot be taken back singly
   * @limit policies: Login, longest time that a rule can say | `POLICY_INVALID`
   */
  POLICY_SESSION_MAX_SECS: 30 * 86_400,
  /**
   * a working day
   * @limit policies: Login, time until the visitor signs in again (unless the rule says otherwise) | the visitor is sent to sign in
   */
  POLICY_SESSION_DEFAULT_SECS: 8 * 3600,
  /** how long a browser keeps what a preflight answered: the longest that any of them honours */
  POLICY_CORS_MAX_AGE_SECS: 86_400,

  // --- matching of policies ---
  /** of one glob: longer than any path that a person writes down */
  POLICY_GLOB_MAX_CHARS: 1024,
  /** runs of `*` in one glob: each may look through the whole text */
  POLICY_GLOB_WILDCARDS_MAX: 16,
  /** texts that one path is compared as; what has more matches every rule that restricts, and no other */
  POLICY_READINGS_MAX: 8,
  /** of all readings together where there are more than two: a path may have all of a head, and its readings are made in one turn */
  POLICY_READINGS_MAX_CHARS: 64 * KiB,
  /** characters that the globs of one request look at, which is some milliseconds; beyond it what restricts matches, and nothing else does */
  POLICY_MATCH_STEPS_MAX: 4_000_000,
  /** characters that placeholders may become in one request, all rules together; with more it is answered 431 */
  POLICY_FILLED_MAX_CHARS: 64 * KiB,

  // --- rate limits of policies ---
  /** of a user or a header’s value; a longer one is counted by its SHA-256 */
  LIMITER_KEY_MAX_CHARS: 64,
} as const;
