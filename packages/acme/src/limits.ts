// Every bound towards a certificate authority, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const ACME_LIMITS = {
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
} as const;
