// Every bound of the rules, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const CORE_LIMITS = {
  // --- messages of HTTP/1.1 ---
  /** from the request or status line to the empty line, both included; above: 431 */
  HTTP_HEAD_MAX_BYTES: 32 * KiB,
  /** field lines of a head; above: 431 */
  HTTP_FIELDS_MAX: 128,
  /** empty lines that are forgiven before a request line (RFC 9112, 2.2) */
  HTTP_EMPTY_LINES_MAX: 2,
  /** all extensions of one chunk line together */
  HTTP_CHUNK_EXTENSION_MAX_BYTES: 4 * KiB,
  /** field lines after the last chunk, together */
  HTTP_TRAILERS_MAX_BYTES: 8 * KiB,
  /** sixteen digits hold every safe integer, and leave room for a writer that pads with zeros */
  HTTP_LENGTH_MAX_DIGITS: 16,
  /** names in `Connection`: each is compared with each field, so a long list would be work for nothing */
  HTTP_CONNECTION_OPTIONS_MAX: 32,
  /** a DNS name has at most 253 characters; the longest port adds six */
  HTTP_AUTHORITY_MAX_CHARS: 260,

  // --- names ---
  /** a label of DNS has no more */
  SUBDOMAIN_MAX_CHARS: 63,
  /** enough to tell tunnels apart, and fits a line */
  TUNNEL_NAME_MAX_CHARS: 100,
  /** as of a tunnel */
  GROUP_NAME_MAX_CHARS: 100,
  /** of a refused name in the text that says why */
  REFUSED_NAME_SHOWN_CHARS: 40,
  /** names that an account has by use alone; the one unused for longest is released then */
  HELD_NAMES_PER_ACCOUNT_MAX: 100,

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
  /** a domain whose proof was not found by then has failed, and is looked at when somebody asks */
  DOMAIN_PENDING_MS: 72 * 60 * 60_000,
  /** how often a domain is looked at that is verified, or has lapsed */
  DOMAIN_DAILY_LOOK_MS: 24 * 60 * 60_000,
  /** a proof that is absent for so long is given up: it is time to read the mail and to set a record again */
  DOMAIN_ABSENT_MS: 7 * 24 * 60 * 60_000,
  /** between two looks that are asked for by hand */
  DOMAIN_ASKED_LOOK_MS: 5000,
  /** between two mails of one kind about one domain */
  DOMAIN_MAIL_MS: 24 * 60 * 60_000,
  /** values of one kind of record that are kept of a look: an edge has a few addresses */
  DOMAIN_KEPT_VALUES_MAX: 16,

  // --- accounts ---
  /** a whole address (RFC 5321) */
  EMAIL_MAX_CHARS: 254,
  /** the part of an address before the @ (RFC 5321) */
  EMAIL_LOCAL_PART_MAX_CHARS: 64,
  /** one label of an address’s domain (RFC 1035) */
  EMAIL_LABEL_MAX_CHARS: 63,
  /** length is what makes a password hard to guess, and the only thing that is asked for */
  PASSWORD_MIN_CHARS: 8,
  /** of UTF-8: bounds the work of a hash */
  PASSWORD_MAX_BYTES: 1024,
  /** edges close the tunnels of a deleted account within seconds, entries of a silent edge are closed within a minute: nobody waits longer for the last usage */
  DELETION_TUNNELS_WAIT_MS: 2 * 60_000,
  /** how often an edge is looked at, and told again, that has not ended the tunnels of a deleted account */
  DELETION_LOOK_MS: 5000,
  /** requests that began before a deletion have ended by then: what they wrote is erased once more, and the deletion is over */
  DELETION_SETTLE_MS: 60_000,
  /** after a step of a deletion failed; twice as long after each failure */
  DELETION_RETRY_MIN_MS: 5000,
  /** also while the payment processor is away for days */
  DELETION_RETRY_MAX_MS: 10 * 60_000,

  // --- clients that ask to be connected (OAuth) ---
  /** of a client id and of a redirect URI: what browsers and servers carry without trouble */
  OAUTH_URI_MAX_CHARS: 2000,
  /** a program lists a handful; each is compared at each request */
  OAUTH_REDIRECT_URIS_MAX: 100,
  /** what a client wants to hear again with the answer: a random value, or a small sealed note */
  OAUTH_STATE_MAX_CHARS: 2000,
  /** what a client calls itself: a line in a dialog */
  OAUTH_CLIENT_NAME_MAX_CHARS: 100,
  /** of a stranger’s text that a page quotes */
  OAUTH_SHOWN_CHARS: 200,
  /** a document about a client is believed for so long whatever it says: a flow asks for it more than once */
  OAUTH_DOCUMENT_LIFE_MIN_MS: 60_000,
  /** and no longer than that: a redirect URI that was taken back must end */
  OAUTH_DOCUMENT_LIFE_MAX_MS: 24 * 60 * 60_000,

  // --- logins of a tunnel's visitors ---
  /** how long a login may take from the first redirect to the last; the cookie that carries it lives as long */
  POLICY_PENDING_LOGIN_SECS: 600,
  /** logins under way in one browser: each has a cookie, and the oldest is dropped */
  POLICY_PENDING_LOGINS_MAX: 4,
  /** a longer path is not come back to with its query, or not at all: it travels in a cookie */
  POLICY_RETURN_PATH_MAX_CHARS: 2 * KiB,

  // --- connections of a process ---
  /** control connections of one network that have not authenticated: an office whose 50 clients all come back brings 250 */
  UNAUTHENTICATED_PER_NETWORK: 256,
  /** the same of all networks together; above it the oldest of the network that holds most gives way */
  UNAUTHENTICATED_MAX: 4096,
  /** control connections and carriers that one account may hold however few descriptors there are; else a quarter of those for control */
  ACCOUNT_CONNECTIONS_MIN: 64,
  /** ports of tunnels that one account may have open however few descriptors there are; else a quarter of those for ports */
  ACCOUNT_PORTS_MIN: 128,
  /** ports of a range that one account may have however small its share of the range is */
  ACCOUNT_RANGE_PORTS_MIN: 4,
  /** carriers that a session will want: without room for them it is not let in */
  CARRIERS_OF_A_SESSION: 4,
  /** connections that a network may hold before it is one that holds more than others: a client that comes back dials five at once */
  NETWORK_ALLOWANCE: 8,
  /** connections of the network that holds most that are looked at for the longest idle one: it happens at each accept of a flood */
  SHED_LOOKS_MAX: 256,
  /** refused connections that are told why at a time; further ones are reset. Their descriptors are of those kept back */
  REFUSALS_BEING_TOLD: 64,
  /** TLS handshakes of a network are counted while the event loop is later than this; below it handshakes delay no other visitor */
  HANDSHAKE_LATE_MS: 50,
  /** the burst of `[limits] handshakes_per_second`, in seconds of it: a browser opens six connections at once, an office some hundred */
  HANDSHAKE_BURST_SECS: 4,
  /** networks whose handshakes are counted; for one more the oldest is forgotten */
  HANDSHAKE_NETWORKS_MAX: 16_384,

  // --- API calls ---
  /** a call of the platform's API that has not begun after so long is refused with 429 */
  API_CALL_WAIT_MS: 2000,
  /** calls per second count once calls have been waiting for so long without a break: before that, nobody is short of anything */
  API_QUEUE_STANDS_MS: 100,
  /** a call that takes longer gives back its place: it waits for an edge or a provider, and must not keep others waiting */
  API_CALL_SLOW_MS: 1000,
  /** the event loop is later than this: the calls that run do not get the time they need */
  API_LATE_MS: 20,
  /** calls of one account or network that run at once then, while others call: a burst of cheap calls must not make every step of theirs wait */
  API_LATE_AT_ONCE: 4,
  /** the burst of `account_calls_per_second` and `network_calls_per_second`, in seconds of them */
  API_BURST_SECS: 4,
  /** the longest time that a refused caller is told to wait */
  API_RETRY_AFTER_MAX_MS: 60_000,

  // --- flows of udp tunnels ---
  /** prefixes (a /24, of IPv6 a /56) whose new flows are counted on one tunnel, and as many of a moment ago; a flood from more is not told from visitors */
  FLOW_PREFIXES_MAX: 16_384,
  /** new flows of one client that it has not answered for: with more than this they would keep it from those that it has */
  FLOWS_OPENING_MAX: 128,
  /** as many may always be: a client that answers late is not a client that is busy */
  FLOWS_OPENING_MIN: 32,
  /** later than the fastest answer by more than this, the client is busy with new flows, and no further one begins */
  FLOWS_OPENING_LATE_MS: 40,
  /** the fastest answer of this time counts; a path may change */
  FLOWS_OPENING_WINDOW_MS: 10_000,
  /** how long a flow that a policy refused is not asked for again */
  FLOW_DENIED_MS: 10_000,
  /** confirmed flows of an account that are looked at to find the one that has been idle longest, when a flow is taken back */
  FLOWS_LOOKED_AT: 1024,
  /** seconds in the wheel of expiry; one that is over later is looked at once more */
  FLOW_WHEEL_SLOTS: 64,

  // --- the better path: UDP between client and edge, or between two peers ---
  /** tries in a row; nearly all that succeed do so at the first */
  PATH_TRIES: 3,
  /** how long a try lasts: an answer that needs longer is of no use to anybody */
  PATH_TRY_MS: 3000,
  /** the beginning of a try, in which probes are dense: both sides must send while the other does */
  PATH_DENSE_MS: 500,
  /** between probes at the beginning of a try */
  PATH_DENSE_EVERY_MS: 50,
  /** between probes in the rest of it */
  PATH_THIN_EVERY_MS: 250,
  /** in use and without an answer for so long: a ping. With the doubt, silence costs 4 s: below the 5 s that are promised */
  PATH_USED_QUIET_MS: 2000,
  /** the same of an idle path: 12 s of the 15 that are promised. Also what keeps a NAT from forgetting it, the quickest after 20 s */
  PATH_IDLE_QUIET_MS: 10_000,
  /** of pings without an answer, then it is left */
  PATH_DOUBT_MS: 2000,
  /** between those pings: twenty, so that neither loss nor a flood in one’s own buffers ends a path that works */
  PATH_DOUBT_PING_EVERY_MS: 100,
  /** pings that were sent before it may be left, however late the process was */
  PATH_DOUBT_PINGS_MIN: 2,
  /** a path that held so long was good: the pauses begin anew */
  PATH_STABLE_MS: 10_000,
  /** the pause after the first round in vain, or after silence */
  PATH_RETRY_FIRST_MS: 5000,
  /** after the second */
  PATH_RETRY_SECOND_MS: 30_000,
  /** after the third */
  PATH_RETRY_THIRD_MS: 120_000,
  /** after each later one: for ever, since networks change without telling */
  PATH_RETRY_LATER_MS: 600_000,

  // --- peers ---
  /** of UTF-8: the edge holds the SHA-256 of a secret, and must not find it by trying */
  P2P_SECRET_MIN_BYTES: 16,
  /** of UTF-8: more is a file that was not meant */
  P2P_SECRET_MAX_BYTES: 1024,
  /** joins of one account that were refused for name, secret or permission; then none is looked at */
  P2P_REFUSALS_PER_MINUTE: 60,
  /** accounts whose refusals are remembered; the oldest is forgotten first */
  P2P_REFUSED_ACCOUNTS_MAX: 10_000,
  /** how long the client of a dismissed peer is told that there is nothing */
  P2P_DISMISSED_MS: 60_000,
  /** dismissed peers that are remembered; the oldest is forgotten first */
  P2P_DISMISSED_MAX: 10_000,

  // --- policies ---
  /** rules of one policy; each may be looked at for each request */
  POLICY_RULES_MAX: 100,
  /** addresses and networks of one policy, all its lists together */
  POLICY_NETWORKS_MAX: 1000,
  /** names with a password in one policy */
  POLICY_USERS_MAX: 100,
  /** tokens of one policy */
  POLICY_TOKENS_MAX: 100,
  /** e-mail addresses and domains of one policy, together */
  POLICY_PEOPLE_MAX: 500,
  /** a policy as JSON in UTF-8; a control message, which holds more than that, has 64 KiB */
  POLICY_WIRE_MAX_BYTES: 48 * KiB,
  /** texts, numbers, lists and tables of a policy as it is sent, all together: each is judged in the turn in which it comes */
  POLICY_VALUES_MAX: 5000,
  /** a page or an answer that stands in a policy, in UTF-8 */
  POLICY_BODY_MAX_BYTES: 16 * KiB,
  /** services that one tunnel may send requests to beside its own */
  POLICY_SERVICES_MAX: 16,
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
  /** the most that a rule may say: the body is held before the service sees a byte of it */
  POLICY_WEBHOOK_MAX_BYTES: 4 * MiB,
  /** how far the time that a webhook’s sender signed may be from ours, either way */
  POLICY_WEBHOOK_SKEW_SECS: 300,
  /** secrets of one webhook: the one in use and those that it replaces */
  POLICY_WEBHOOK_SECRETS_MAX: 10,
  /** bytes that one request’s signatures are computed over, of all rules and secrets together: some milliseconds; secrets beyond it are not tried */
  POLICY_HASHED_MAX_BYTES: 10 * MiB,
  /** a token of programs: enough that nobody finds one by trying */
  POLICY_TOKEN_MIN_CHARS: 20,
  /** and short enough for a header */
  POLICY_TOKEN_MAX_CHARS: 512,
  /** a login that is shorter sends people round and round */
  POLICY_SESSION_MIN_SECS: 60,
  /** 30 days: a session cannot be taken back singly */
  POLICY_SESSION_MAX_SECS: 30 * 86_400,
  /** a working day */
  POLICY_SESSION_DEFAULT_SECS: 8 * 3600,
  /** how long a browser keeps what a preflight answered: the longest that any of them honours */
  POLICY_CORS_MAX_AGE_SECS: 86_400,

  // --- health ---
  /** transitions of one tunnel’s health that are kept, the oldest go first */
  HEALTH_HISTORY_MAX: 50,

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
  /** of one rule at an edge; those that find no room share one bucket */
  LIMITER_KEYS_PER_RULE: 10_000,
  /** of all rules of an edge: some 15 MB */
  LIMITER_KEYS_MAX: 200_000,
  /** of all rules of one account; the operator’s own tunnels may have more, each for itself, but never what is left for others */
  LIMITER_KEYS_PER_TENANT: 50_000,
  /** of a user or a header’s value; a longer one is counted by its SHA-256 */
  LIMITER_KEY_MAX_CHARS: 64,
  /** that one look of the timer goes through: well under a millisecond */
  LIMITER_SWEEP_KEYS: 5000,
  /** that a request goes through which finds a full table */
  LIMITER_SWEEP_KEYS_PER_TAKE: 16,

  // --- the doctor ---
  /** certificates and sessions forgive this much */
  DOCTOR_CLOCK_WARN_MS: 60_000,
  /** beyond it sign-ins and certificates fail for no other reason */
  DOCTOR_CLOCK_FAIL_MS: 5 * 60_000,
  /** renewals happen a month before the end; two weeks before it one has failed */
  DOCTOR_CERTIFICATE_WARN_DAYS: 14,
  /** people notice a quarter of a second */
  DOCTOR_LATENCY_WARN_MS: 250,
  /** a page of a megabyte takes eight seconds then */
  DOCTOR_BANDWIDTH_WARN_MBITS: 1,

  // --- the first message of TLS ---
  /** of a visitor (ClientHello); a longer one is closed. Those with keys that are safe from quantum computers have 1.5 KB */
  TLS_HELLO_MAX_BYTES: 16_384,

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
  /** new orders within the window below; the best known authority allows 300 */
  CERTIFICATE_ORDERS_MAX: 250,
  /** the window in which new orders are counted */
  CERTIFICATE_ORDERS_WINDOW_MS: 3 * 3_600_000,
  /** how many of those orders one account can make: a quarter. The operator's own names are not counted */
  CERTIFICATE_ORDERS_PER_ACCOUNT: 62,
  /** orders of one account under way at once in one process. An order can take minutes, so one of the four places stays free for other accounts */
  CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT: 3,
  /** certificates of single names below the domain within the window below; the best known authority gives 50 a registered domain */
  CERTIFICATE_NAMES_MAX: 40,
  /** how many of those one account can get: a quarter */
  CERTIFICATE_NAMES_PER_ACCOUNT: 10,
  /** the window in which those are counted */
  CERTIFICATE_NAMES_WINDOW_MS: 7 * 24 * 3_600_000,
} as const;

/** Those that a reader of messages may want otherwise, as an argument. */
export interface Http1Bounds {
  readonly headMaxBytes: number;
  readonly fieldsMax: number;
  readonly emptyLinesMax: number;
  readonly chunkExtensionMaxBytes: number;
  readonly trailersMaxBytes: number;
}

export const HTTP1_BOUNDS: Http1Bounds = {
  headMaxBytes: CORE_LIMITS.HTTP_HEAD_MAX_BYTES,
  fieldsMax: CORE_LIMITS.HTTP_FIELDS_MAX,
  emptyLinesMax: CORE_LIMITS.HTTP_EMPTY_LINES_MAX,
  chunkExtensionMaxBytes: CORE_LIMITS.HTTP_CHUNK_EXTENSION_MAX_BYTES,
  trailersMaxBytes: CORE_LIMITS.HTTP_TRAILERS_MAX_BYTES,
};
