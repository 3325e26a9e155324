// Every bound of the platform, by name.

const KiB = 1024;
const MiB = 1024 * KiB;

export const LIMITS = {
  // --- requests ---
  /**
   * Of a request to the API.
   * @limit api: Request body, size (platform) | 413 `API_BODY_TOO_LARGE`
   */
  BODY_MAX_BYTES: 64 * KiB,
  /** Of an edge's call: a batch holds up to 1000 records of its journal. */
  EDGE_LINK_BODY_MAX_BYTES: 2 * MiB,
  /** For the head of a request: a caller that sends nothing must not hold a connection. */
  HEAD_TIMEOUT_MS: 15_000,
  /** For a whole request, its body included. */
  REQUEST_TIMEOUT_MS: 30_000,
  /** Connections of all callers at once; far below the descriptors of a process. */
  CONNECTIONS_MAX: 4096,
  /** What requests under way get to finish when the process stops. */
  HTTP_STOP_GRACE_MS: 2000,

  // --- turns of API calls ---
  /** Requests of one connection that wait for answers before theirs; one more ends the connection. */
  PIPELINED_MAX: 32,
  /** How often calls that wait are looked at. */
  API_CALLS_LOOK_MS: 10,

  // --- database ---
  /**
   * Of one process, for API calls and jobs. With those for edges 26: the embedded PostgreSQL gives 57 to two platforms and the operator's commands.
   * @limit operator: Database connections of one platform process for calls and jobs | further calls wait
   */
  DATABASE_CONNECTIONS: 18,
  /**
   * Connections of one process for calls of edges alone, so that these never wait for API calls. One of them listens for changes.
   * @limit operator: Database connections of one platform process for edges | further calls wait
   */
  DATABASE_LINK_CONNECTIONS: 8,
  /** A database that does not take a connection within this time is away. */
  DATABASE_CONNECT_TIMEOUT_MS: 5000,
  /**
   * PostgreSQL itself ends a statement that runs longer.
   * @limit operator: Database statement, time | PostgreSQL ends the statement; 503 `DATABASE_AWAY`
   */
  DATABASE_STATEMENT_TIMEOUT_MS: 15_000,
  /** Longer than that, a database that has not even said so is taken for one that is away. */
  DATABASE_ANSWER_GRACE_MS: 2000,
  /** A connection that nobody has used for so long is closed. */
  DATABASE_IDLE_MS: 30_000,
  /** Of GET /health/db. */
  DATABASE_PROBE_MS: 1000,
  /** How long an answer of GET /health/db is given again. */
  DATABASE_PROBE_KNOWN_MS: 1000,
  /** How often one that is away is looked for. */
  DATABASE_LOOK_MS: 1000,
  /** What a caller is told to wait while the database is away. */
  DATABASE_RETRY_AFTER_SECS: 2,

  // --- keys ---
  /**
   * That can be used: GET /keys shows them all at once.
   * @limit accounts: API keys of one account | 400 `KEY_LIMIT`
   */
  KEYS_PER_ACCOUNT_MAX: 1000,
  /** Revoked keys of an account that are kept; older ones are deleted when one more is revoked. */
  REVOKED_KEYS_KEPT: 100,

  // --- certificates ---
  /** How often is looked whether other certificates are wanted; what changes here is looked at once. */
  CERTIFICATES_EVERY_MS: 5000,
  /** How long the first order waits for the edge of the same stack to open its ports. */
  CERTIFICATES_EDGE_WAIT_MS: 60_000,
  /** How often is looked whether it has. */
  CERTIFICATES_EDGE_LOOK_MS: 200,
  /** And whatever is announced: an account was deleted, a wildcard has ended, a clock was set. */
  CERTIFICATES_ANYWAY_MS: 60_000,
  /** Reserved names that are looked at for certificates of their own, oldest first, where no wildcard covers them. */
  CERTIFIED_NAMES_MAX: 10_000,

  // --- names ---
  /** Random names that are tried for who asks for none. */
  FREE_NAME_TRIES: 5,
  /** Free ports that are tried for who asks for none: others may be as fast. */
  FREE_PORT_TRIES: 20,
  /** Rows of the snapshot for an edge that are in memory at once. */
  NAMES_PAGE: 1000,
  /** How often names whose time is over are looked for. */
  NAMES_EVERY_MS: 60_000,
  /** Names that one transaction ends. */
  NAMES_ROWS: 500,
  /** How often own domains that are due are looked for. */
  DOMAINS_EVERY_MS: 1000,
  /** Own domains that one process looks at in DNS at once. */
  DOMAIN_LOOKS_AT_ONCE: 50,
  /**
   * Of those, one account's; and as many again that it asked for by hand: names whose servers never answer keep nobody else's waiting.
   * @limit accounts: Own domains of one account that are checked at once | 429 `DOMAIN_CHECKS_AT_ONCE`
   */
  DOMAIN_LOOKS_PER_ACCOUNT: 4,
  /** A look that its process did not live to judge is begun again after so long. */
  DOMAIN_CLAIM_MS: 60_000,
  /** How long the addresses that `[server] domain` resolves to are known. */
  EDGE_ADDRESSES_KNOWN_MS: 5 * 60_000,
  /** Where there were none, or no answer, they are looked up again after so long. */
  EDGE_ADDRESSES_AGAIN_MS: 30_000,
  /** What a request for domains waits for them. */
  EDGE_ADDRESSES_WAIT_MS: 1000,
  /** Released subdomains of an account that others cannot have because of it; of more, those released first are free at once. */
  RELEASED_NAMES_PER_ACCOUNT_MAX: 1000,
  /** The same for ports, which are scarce. */
  RELEASED_PORTS_PER_ACCOUNT_MAX: 100,

  // --- edges ---
  /**
   * An edge that was not heard for so long is taken for dead; heartbeats come every 5 s. With the job's pace: within 60 s.
   * @limit operator: Silence after which an edge counts as dead | its tunnels are closed in the platform
   */
  EDGE_SILENT_MS: 45_000,
  /** Edges heard within this time are asked for pools. */
  EDGE_RECENT_MS: 60_000,
  /** What one edge may take to tell its pools: a page waits for all of them. */
  EDGE_GROUPS_TIMEOUT_MS: 2000,
  /** What an edge may take for any other question; then it is `EDGE_AWAY`. */
  EDGE_CALL_TIMEOUT_MS: 5000,
  /** The edge gives a service 30 s for it. */
  EDGE_REPLAY_TIMEOUT_MS: 35_000,
  /** How often the list of an edge of before is looked at for a request that is waited for. */
  REQUEST_POLL_MS: 1000,
  /** Of an edge's answer. */
  EDGE_ANSWER_MAX_BYTES: 32 * MiB,
  /** Streams of changes at once. */
  CHANGE_STREAMS_MAX: 2000,
  /** A sign of life on a stream of changes, so that both ends notice a dead one. */
  CHANGES_ALIVE_MS: 10_000,
  /** How often changes are looked for even when PostgreSQL does not call. */
  CHANGES_POLL_MS: 1000,
  /** Changes read at once. */
  CHANGES_PAGE: 500,
  /** A stream that nobody reads is cut after so many signs of life. */
  CHANGES_UNREAD_MAX: 3,
  /** An edge that was away for longer asks for everything anew. */
  CHANGES_KEPT_DAYS: 7,
  /** Rows of the snapshot of certificates that are in memory at once; each has a key to be opened, and all of a page are one turn of the loop. */
  CERTIFICATES_PAGE: 50,
  /** How often the platform looks whether its own certificate has been renewed, where it speaks TLS. */
  OWN_CERTIFICATE_LOOK_MS: 2000,
  /** How often it looks whether the day is over whose key sealed the tickets of TLS sessions. */
  TLS_PORT_TICKETS_LOOK_MS: 60_000,
  /** Edges whose questions are counted, and of which is said once that their link is in clear. */
  LINK_EDGES_MAX: 2000,
  /** Tunnels that one change names: an edge reads lines of at most 64 KiB. */
  CLOSED_TUNNELS_PER_CHANGE: 100,
  /** Accounts that edges are told of by name when their plan has changed in server.toml; of more, edges ask by themselves. */
  PLAN_CHANGES_MAX: 1000,
  /** How often uses of keys are written, all at once. */
  KEY_USES_FLUSH_MS: 5000,
  /** last_used_at is written at most this often for a key. */
  KEY_USE_EVERY_MS: 60_000,
  /** Keys whose use waits to be written; more are not noted until the next flush. */
  KEY_USES_MAX: 50_000,

  // --- MCP ---
  /**
   * Of a message to /mcp: arguments of tools are short.
   * @limit mcp: Platform: message, size | 413 `API_BODY_TOO_LARGE`
   */
  MCP_BODY_MAX_BYTES: 256 * KiB,
  /**
   * Calls of one account at /mcp at a time: each may wait for minutes.
   * @limit mcp: Platform: calls of one account at once | 429 `MCP_CALLS_OPEN`
   */
  MCP_OPEN_CALLS_MAX: 20,
  /**
   * Such a call is cut then: the longest wait is over, and whoever only listens, or does not read its answer, shows its token again.
   * @limit mcp: Platform: call, time | the call is cut off
   */
  MCP_CALL_MAX_MS: 330_000,
  /** What a caller is told to wait while that many are open. */
  MCP_RETRY_AFTER_SECS: 1,
  /** A sign of life on an answer that is a stream, so that proxies keep it open. */
  MCP_ALIVE_MS: 15_000,
  /** Streams of /mcp on which hosts wait for changes of lists, of all accounts. */
  MCP_SUBSCRIPTIONS_MAX: 1000,
  /** Answers to questions for what /mcp offers, which hosts ask at every turn in the same words. */
  MCP_LISTINGS_MAX: 200,
  /** Longer questions are answered anew each time. */
  MCP_LISTING_KEY_MAX_CHARACTERS: 2000,
  /** API keys whose account is known without asking the database. */
  VERIFIED_KEYS_MAX: 20_000,

  // --- jobs ---
  /** How often tunnels of edges that are gone are looked for. */
  CLOSE_LOST_EVERY_MS: 10_000,
  /** How often what is past its retention is deleted. */
  CLEAN_UP_EVERY_MS: 10 * 60_000,
  /** Rows that one statement of a clean-up deletes. */
  CLEAN_UP_ROWS: 5000,
  /** That a mail was sent or given up is known for so long; what it said is gone at once. */
  MAIL_KEPT_DAYS: 7,

  // --- accounts ---
  /** How often deletions of accounts are looked for. */
  DELETIONS_EVERY_MS: 1000,
  /** Accounts whose deletion goes on at once. */
  DELETIONS_AT_ONCE: 5,
  /** What a process that died had is taken by another one after so long. Longer than the calls to the payment processor. */
  DELETION_CLAIM_MS: 60_000,
  /**
   * An access token cannot be taken back, so it lives for a short time.
   * @limit accounts: Access token, lifetime | 401 `ACCESS_TOKEN_INVALID`; the refresh token gets a new one
   */
  ACCESS_TOKEN_SECS: 15 * 60,
  /**
   * A log-in that nobody uses for so long ends.
   * @limit accounts: Sign-in, time without use | the session ends
   */
  REFRESH_TOKEN_SECS: 30 * 24 * 60 * 60,
  /** Two tabs, or an answer that was lost: the old token still works for so long, so many times. */
  REFRESH_GRACE_MS: 10_000,
  /** How often the old token still works in that time. */
  REFRESH_GRACE_USES: 5,
  /**
   * Places where one account is logged in; one more ends the one that was used longest ago.
   * @limit accounts: Sessions of one account | the session that was unused for longest ends
   */
  SESSIONS_PER_ACCOUNT_MAX: 100,
  /** What is kept of the name that a browser gives itself. */
  USER_AGENT_MAX_CHARACTERS: 300,
  /**
   * How long the link of a verification mail works.
   * @limit accounts: Verification link, lifetime | the link does not work any more
   */
  VERIFY_TOKEN_MS: 24 * 60 * 60_000,
  /**
   * How long the link that sets a new password works.
   * @limit accounts: Password reset link, lifetime | the link does not work any more
   */
  RESET_TOKEN_MS: 60 * 60_000,
  /**
   * Of an invitation, and of the link with which somebody chooses the first password of an account that an operator made.
   * @limit accounts: Invitation, lifetime | the link does not work any more
   */
  INVITE_MS: 7 * 24 * 60 * 60_000,
  /** Of Argon2id; a stored hash with less is made anew at the next login. */
  PASSWORD_MEMORY_KIB: 19 * KiB,
  /** Of Argon2id, as OWASP recommends for this much memory. */
  PASSWORD_PASSES: 2,
  /** Of Argon2id; several passwords are hashed side by side instead. */
  PASSWORD_LANES: 1,
  /** Passwords that wait to be hashed; more are refused with 503. */
  PASSWORDS_WAITING_MAX: 64,
  /** What a caller is told to wait while too many passwords wait. */
  PASSWORDS_RETRY_AFTER_SECS: 2,
  /** Access tokens that were checked and are known until they run out; and users, for so long. */
  VERIFIED_TOKENS_MAX: 20_000,
  /** Accounts whose state is known without asking the database. */
  KNOWN_USERS_MAX: 20_000,
  /** For so long: a suspension is in force within it. */
  KNOWN_USER_MS: 2000,
  /** How long keys that sign tokens are known: a rotation elsewhere is seen within it. And how often an unknown one makes us look. */
  SIGNING_KEYS_KNOWN_MS: 10_000,
  /** How often a token of an unknown key makes the platform look for new keys. */
  SIGNING_KEYS_LOOK_MS: 1000,
  /** Names of signing keys that do not exist, by which a forged token is refused without another look. */
  SIGNING_KEYS_ABSENT_MAX: 4096,
  /** A key that was replaced verifies for so long: four times as long as any token of it lives. */
  SIGNING_KEY_RETIRED_MS: 60 * 60_000,

  // --- authorization of programs ---
  /**
   * What one that asks to be connected waits for its user.
   * @limit accounts: Consent page of an app, time to decide | 404 `OAUTH_REQUEST_UNKNOWN`
   */
  OAUTH_REQUEST_MS: 10 * 60_000,
  /** Requests that wait, of all networks; one more ends the oldest. */
  OAUTH_REQUESTS_MAX: 10_000,
  /** A program redeems its code at once; whoever reads it in a log later finds it worthless. */
  OAUTH_CODE_MS: 60_000,
  /**
   * Programs that one account has connected; one more ends the one that was used longest ago.
   * @limit accounts: Connected apps of one account | the app that was unused for longest is disconnected
   */
  OAUTH_GRANTS_PER_ACCOUNT_MAX: 100,
  /** Of a document about a client; honest ones have a few hundred. */
  OAUTH_DOCUMENT_MAX_BYTES: 64 * KiB,
  /** For such a document, from the look-up of the name to its last byte: a person waits. */
  OAUTH_DOCUMENT_TIMEOUT_MS: 5000,
  /** Documents and refusals that are known; the one that was asked for longest ago leaves first. */
  OAUTH_DOCUMENTS_MAX: 1000,
  /** Why one was refused is known for so long: its makers correct it and try again. */
  OAUTH_DOCUMENT_REFUSED_MS: 60_000,
  /** Documents fetched at once; more callers are told to come back. */
  OAUTH_DOCUMENTS_AT_ONCE: 16,
  /** Of those for one network: a stranger whose servers drip holds up nobody else. */
  OAUTH_DOCUMENTS_PER_NETWORK: 4,
  /** What a caller is told to wait while too many are fetched: as long as one may take. */
  OAUTH_BUSY_RETRY_AFTER_SECS: 5,
  /** Grants whose end is known without asking the database; for as long as the state of accounts. */
  KNOWN_GRANTS_MAX: 20_000,

  // --- billing ---
  /** Use that is told so long after the end of its month is still billed in it. Shorter than the processor keeps a month open. */
  MONTH_LATE_MS: 50 * 60_000,
  /** How often accounts over their spend cap are looked for; and how many are dealt with at once. */
  CAPS_EVERY_MS: 5000,
  /** Accounts over their cap that one run deals with. */
  CAPS_ROWS: 200,
  /** Edges are told again when tunnels of an account over its cap are still open after so long. */
  CAP_CLOSED_AGAIN_MS: 30_000,
  /** Accounts that are past due, or have more than their plan allows, are looked for so often; so many are dealt with at once. */
  ENTITLEMENTS_EVERY_MS: 5000,
  /** Such accounts that one run deals with. */
  ENTITLEMENTS_ROWS: 200,
  /** Of a webhook of the payment processor. */
  WEBHOOK_BODY_MAX_BYTES: MiB,
  /** As long as the payment processor takes them. */
  IDEMPOTENCY_KEY_MAX_CHARACTERS: 255,
  /**
   * A request with the same key gets the same answer for so long.
   * @limit api: Idempotency-Key, time for which it returns the same response | the request is carried out again
   */
  IDEMPOTENCY_KEPT_MS: 24 * 60 * 60_000,
  /** What a second request with a key waits for the first one. */
  IDEMPOTENCY_WAIT_MS: 10_000,
  /** How often a second request looks for the answer to the first one. */
  IDEMPOTENCY_LOOK_MS: 100,
  /** What a caller is told to wait when the first one is still under way. */
  IDEMPOTENCY_RETRY_AFTER_SECS: 2,
  /** A request without an answer after so long has died with its process: the next one with its key is done anew. */
  IDEMPOTENCY_LEASE_MS: 90_000,
  /** Accounts that were not read at the processor for so long are read again: a webhook may be lost. */
  RESYNC_AFTER_MS: 60 * 60_000,
  /** How often such accounts are looked for. */
  RESYNC_EVERY_MS: 60_000,
  /** Accounts past due on a clock that is moved by hand, the simulator's, are read so often. */
  TEST_CLOCKS_EVERY_MS: 10_000,
  /** Accounts that one run reads. */
  RESYNC_ROWS: 200,
  /** Webhooks that were dealt with are known for so long: the processor repeats them for days. */
  PROCESSOR_EVENTS_KEPT_DAYS: 30,
  /** Which mails about a cap went out: a month needs its own, and some days more. */
  CAP_NOTICES_KEPT_DAYS: 62,
  /** Of one call to the payment processor, its retries included. */
  PROCESSOR_TIMEOUT_MS: 10_000,
  /** Of a call to the payment processor that may be repeated. */
  PROCESSOR_RETRIES: 2,
  /** What a caller is told to wait while the processor is away. */
  PROCESSOR_RETRY_AFTER_SECS: 5,

  // --- mail ---
  /**
   * Mails that strangers can cause (verification, resend, reset) to one recipient, together.
   * @limit accounts: Verification and reset mails per hour to one address | no further mail is sent; the response is the same
   */
  STRANGERS_MAILS_PER_HOUR: 3,
  /**
   * The same for a day.
   * @limit accounts: Verification and reset mails per day to one address | no further mail is sent; the response is the same
   */
  STRANGERS_MAILS_PER_DAY: 10,
  /** Requests for such mails that wait; more are answered and forgotten. */
  MAIL_REQUESTS_MAX: 10_000,
  /** Files of mails are there within 2 s of the request. */
  MAIL_REQUESTS_EVERY_MS: 500,
  /** Requests that one run of the job takes up. */
  MAIL_REQUESTS_BATCH: 100,
  /** How often mails that wait are looked for. */
  MAIL_POLL_MS: 1000,
  /** Mails that one process holds, and how many of them it sends at once. */
  MAIL_BATCH: 100,
  /** Mails that one process sends at once. */
  MAIL_SENDS_MAX: 10,
  /** A mail that is being sent is not taken by another process for so long; claimed again while it is. What a process that died had waits for this. */
  MAIL_CLAIM_MS: 10_000,
  /** For one mail, from the connection to the last answer of the mail server. */
  MAIL_SEND_TIMEOUT_MS: 45_000,
  /** For the connection to the mail server. */
  MAIL_CONNECT_TIMEOUT_MS: 10_000,
  /** The first pause after a mail that could not be sent. */
  MAIL_RETRY_MIN_MS: 5000,
  /** Pauses grow up to this. */
  MAIL_RETRY_MAX_MS: 60 * 60_000,
  /**
   * A mail that could not be sent for so long is given up, with a line in the log.
   * @limit operator: Mail that cannot be delivered, time | the mail is given up and logged
   */
  MAIL_GIVE_UP_MS: 24 * 60 * 60_000,

  // --- billing: metering ---
  /** How often usage becomes meter events: at most one an account, a month and this time. */
  METER_CUT_EVERY_MS: 60_000,
  /** Accounts whose usage one statement cuts. */
  METER_CUT_ROWS: 1000,
  /** How often events that wait are looked for. */
  METER_POLL_MS: 5000,
  /** Events that one run takes up. */
  METER_BATCH: 20,
  /** For one call that reports an event. */
  METER_CALL_TIMEOUT_MS: 5000,
  /** An event that is being sent is not taken by another process for so long. Longer than its call. */
  METER_CLAIM_MS: 6000,
  /** The first pause after an event that could not be reported. */
  METER_RETRY_MIN_MS: 5000,
  /** Pauses grow up to this. */
  METER_RETRY_MAX_MS: 10 * 60_000,
  /** The processor forgets an identifier after 24 h: one that was tried so long ago is first looked for in its sums. */
  METER_COMPARE_AFTER_MS: 20 * 60 * 60_000,
  /** The processor finalises a month's invoice an hour after its end: usage reported later goes on the next one. */
  METER_MONTH_OPEN_MS: 55 * 60_000,
  /** What reporting the rest of one account may take: shorter than the processor waits for us. */
  METER_FLUSH_MS: 8000,
  /** How often the last events of an account are looked at meanwhile. */
  METER_FLUSH_LOOK_MS: 200,
  /** How an invoice came about can be looked up for so long. */
  METER_EVENTS_KEPT_DAYS: 100,

  // --- accounts ---
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

  // --- API calls ---

  // --- certificates that are ordered by themselves ---
  /**
   * how many of those one account can get: a quarter
   * @limit accounts: Certificates for single names of one account within 7 days | the order waits until the week is over
   */
  CERTIFICATE_NAMES_PER_ACCOUNT: 10,
} as const;
