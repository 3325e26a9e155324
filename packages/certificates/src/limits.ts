// Every bound towards a certificate authority, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const CERTIFICATES_LIMITS = {
  // --- calls to a certificate authority ---
  /** one call, from the look-up of its name to the last byte */
  AUTHORITY_CALL_TIMEOUT_MS: 30_000,
  /** a directory, an order, an error */
  ANSWER_MAX_BYTES: 64 * KiB,
  /** a certificate with those that vouch for it */
  CHAIN_MAX_BYTES: 128 * KiB,
  /** certificates in it */
  CHAIN_MAX_CERTIFICATES: 10,
  /** names in one certificate; the best known authority takes 100 */
  NAMES_MAX: 100,
  /** of an authority’s text that is quoted */
  DETAIL_SHOWN_CHARS: 500,
  /** nonces that wait for the next calls; more are dropped */
  NONCES_KEPT_MAX: 16,
  /** times that a call is made again because its nonce was refused */
  BAD_NONCE_TRIES: 5,
  /** how long a directory is used before it is read again */
  DIRECTORY_LIFE_MS: 3_600_000,
  /** first pause between two looks at what the authority works on; doubled each time, or as it says */
  POLL_FIRST_MS: 500,
  /** the longest of these pauses */
  POLL_LONGEST_MS: 10_000,
  /** how long a validation or an order is looked at; then it is left for a later try, which takes it up again */
  POLL_TOTAL_MS: 90_000,

  // --- the keeper of certificates ---
  /** orders under way at once, in one process */
  ORDERS_AT_ONCE: 4,
  /** how often is looked for work; what is asked for here begins at once */
  LOOK_EVERY_MS: 5000,
  /** at a start: between two certificates that the authority is asked about, so that thousands are no flood */
  INFO_AT_START_EVERY_MS: 100,
  /** who works on a certificate has it for so long; then another may */
  LEASE_MS: 60_000,
  /** how often that is renewed */
  LEASE_RENEW_MS: 20_000,
  /** an answer to a challenge is forgotten after that, whoever set it */
  CHALLENGE_LIFE_MS: 10 * 60_000,
  /** how long an answer may take to be set and seen: a program sets it, and records of DNS spread */
  CHALLENGE_SET_MS: 200_000,
  /** how long the account at the authority is not asked for again after that failed; less than the first pause of an order */
  ACCOUNT_AGAIN_MS: 30_000,
  /** how long nobody orders after the store failed, or the key file */
  PAUSE_MS: 60_000,
  /** how long a stop waits for orders under way; they are finished after the next start */
  STOP_WAIT_MS: 5000,

  // --- the authority of this machine ---
  /** how long it lives: people trust it once */
  LOCAL_CA_LIFE_MS: 10 * 365 * 86_400_000,
  /** how long a certificate of it lives; made anew when half of that is over */
  LOCAL_LEAF_LIFE_MS: 90 * 86_400_000,

  // --- own domains ---
  /** a name of DNS has no more; with labels of one character it has 127 of them */
  DOMAIN_NAME_MAX_CHARS: 253,
  /** the first look after a domain was added: whoever has set the records before waits no longer */
  DOMAIN_FIRST_LOOK_MS: 5000,
  /** the second, from the same moment */
  DOMAIN_SECOND_LOOK_MS: 15_000,
  /** the third, likewise */
  DOMAIN_THIRD_LOOK_MS: 30_000,
  /** then so often, while somebody is likely to sit in front of it */
  DOMAIN_OFTEN_LOOK_MS: 60_000,
  /** and for so long after it was added */
  DOMAIN_OFTEN_FOR_MS: 60 * 60_000,
  /** then so often: records that were there before are kept by resolvers for hours */
  DOMAIN_SELDOM_LOOK_MS: 10 * 60_000,
  /**
   * a domain whose proof was not found by then has failed, and is looked at when somebody asks
   * @limit accounts: Own domain, time to set the DNS record that proves it | verification fails; it can be started again
   */
  DOMAIN_PENDING_MS: 72 * 60 * 60_000,
  /** how often a domain is looked at that is verified, or has lapsed */
  DOMAIN_DAILY_LOOK_MS: 24 * 60 * 60_000,
  /**
   * a proof that is absent for so long is given up: it is time to read the mail and to set a record again
   * @limit accounts: Own domain, time for which its DNS record can be missing later | the domain lapses
   */
  DOMAIN_ABSENT_MS: 7 * 24 * 60 * 60_000,
  /**
   * between two looks that are asked for by hand
   * @limit accounts: Own domain, time between two checks on request | 429 `DOMAIN_CHECK_TOO_SOON`
   */
  DOMAIN_ASKED_LOOK_MS: 5000,
  /** between two mails of one kind about one domain */
  DOMAIN_MAIL_MS: 24 * 60 * 60_000,
  /** values of one kind of record that are kept of a look: an edge has a few addresses */
  DOMAIN_KEPT_VALUES_MAX: 16,

  // --- certificates that are ordered by themselves ---
  /** after the first failed try: four tries in the first hour, where an authority allows five refused validations of a name */
  CERTIFICATE_RETRY_FIRST_MS: 60_000,
  /** after the second */
  CERTIFICATE_RETRY_SECOND_MS: 5 * 60_000,
  /** after the third */
  CERTIFICATE_RETRY_THIRD_MS: 30 * 60_000,
  /** after the fourth */
  CERTIFICATE_RETRY_FOURTH_MS: 2 * 3_600_000,
  /** after the fifth */
  CERTIFICATE_RETRY_FIFTH_MS: 12 * 3_600_000,
  /** after each further one */
  CERTIFICATE_RETRY_LAST_MS: 24 * 3_600_000,
  /** at most that when less than a tenth of the certificate’s life is left */
  CERTIFICATE_RETRY_EMERGENCY_MS: 3_600_000,
  /** an authority’s Retry-After is taken at its word up to here; its longest window is a week */
  CERTIFICATE_RETRY_AFTER_MAX_MS: 8 * 24 * 3_600_000,
  /** an order that was begun is taken up again for so long; then a new one is made */
  CERTIFICATE_ORDER_KEPT_MS: 24 * 3_600_000,
  /** how often an authority is asked when it wants a certificate renewed, unless it says (RFC 9773) */
  CERTIFICATE_INFO_EVERY_MS: 6 * 3_600_000,
  /** and not more often, whatever it says */
  CERTIFICATE_INFO_MIN_MS: 60_000,
  /** nor less often */
  CERTIFICATE_INFO_MAX_MS: 24 * 3_600_000,
  /** with a shorter life it is renewed at a half instead of two thirds of it: too little would be left for failures */
  CERTIFICATE_SHORT_LIFE_MS: 10 * 24 * 3_600_000,
  /** how often somebody is told of one that is about to end */
  CERTIFICATE_WARN_EVERY_MS: 24 * 3_600_000,
  /**
   * new orders within the window below; the best known authority allows 300
   * @limit operator: Certificate orders within 3 h | further orders wait
   */
  CERTIFICATE_ORDERS_MAX: 250,
  /** the window in which new orders are counted */
  CERTIFICATE_ORDERS_WINDOW_MS: 3 * 3_600_000,
  /**
   * how many of those orders one account can make: a quarter. The operator's own names are not counted
   * @limit accounts: Certificate orders of one account within 3 h | the order waits
   */
  CERTIFICATE_ORDERS_PER_ACCOUNT: 62,
  /** orders of one account under way at once in one process. An order can take minutes, so one of the four places stays free for other accounts */
  CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT: 3,
} as const;
