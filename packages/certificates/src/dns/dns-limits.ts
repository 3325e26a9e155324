// Every bound of what is asked of DNS and answered to it, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const DNS_LIMITS = {
  // --- look-ups ---
  /** how long one server may take */
  LOOKUP_TIMEOUT_MS: 2000,
  /** how often each server is asked */
  LOOKUP_TRIES: 2,
  /** of one look-up altogether, however many servers there are; a proof that nobody could look at is looked at again */
  LOOKUP_TOTAL_MS: 10_000,
  /** CNAMEs that are followed from one name */
  CHAIN_MAX: 8,
  /** records of one answer that are looked at; the rest is left out */
  ANSWER_RECORDS_MAX: 100,
  /** of one TXT record, its strings joined; a longer one is none of ours, and left out */
  TEXT_MAX_CHARS: 1 * KiB,

  // --- records of challenges ---
  /** between looks at whether a record can be seen */
  SEEN_EVERY_MS: 2000,
  /** then it is given up, and no validation is spent */
  SEEN_WITHIN_MS: 120_000,
  /**
   * how long the program of `[acme] dns_exec` may take
   * @limit operator: Program of `[acme] dns_exec`, time | the program is ended and the order has failed
   */
  HOOK_TIMEOUT_MS: 60_000,
  /** after it has ended: output of it that is still on the way, or a pipe that a program of its own holds */
  HOOK_DRAIN_MS: 500,
  /** of its output, in an error */
  HOOK_OUTPUT_MAX_BYTES: 1 * KiB,
  /** of its environment: a variable that is named like a secret and has at least so many characters is masked in its output */
  HOOK_SECRET_MIN_CHARS: 6,

  // --- the built-in responder ---
  /** records of challenges at a time: four orders are under way at once, and each has a few */
  RECORDS_MAX: 1000,
  /** seconds that others may keep an answer: a value is asked for once, right after it was set */
  RECORD_TTL_SECS: 1,
  /** of an answer over UDP; a longer one is asked for again over TCP */
  UDP_ANSWER_MAX_BYTES: 512,
  /** of a question: a name, a type, and what else a resolver says of itself */
  QUERY_MAX_BYTES: 4 * KiB,
  /** connections at a time; the one that is open for longest gives way */
  TCP_CONNECTIONS_MAX: 128,
  /** the same of one address */
  TCP_CONNECTIONS_PER_ADDRESS: 8,
  /** how long a connection may be open, whatever it does: whoever asks has one or two questions */
  TCP_CONNECTION_MS: 10_000,
  /** answers that wait for somebody to read them; then the connection is cut */
  TCP_UNREAD_MAX_BYTES: 64 * KiB,
} as const;
