// Every bound of the platform, by name.

const KiB = 1024;
const MiB = 1024 * KiB;

export const LIMITS = {
  /** Of a request to the API. */
  BODY_MAX_BYTES: 64 * KiB,
  /** Of an edge's call: a batch holds up to 1000 records of its journal. */
  EDGE_LINK_BODY_MAX_BYTES: 2 * MiB,
  HEAD_TIMEOUT_MS: 15_000,
  REQUEST_TIMEOUT_MS: 30_000,
  CONNECTIONS_MAX: 4096,
  /** What requests under way get to finish when the process stops. */
  HTTP_STOP_GRACE_MS: 2000,

  // --- database ---
  DATABASE_CONNECTIONS: 20,
  DATABASE_CONNECT_TIMEOUT_MS: 5000,
  DATABASE_STATEMENT_TIMEOUT_MS: 15_000,
  /** Longer than that, a database that has not even said so is taken for one that is away. */
  DATABASE_ANSWER_GRACE_MS: 2000,
  DATABASE_IDLE_MS: 30_000,
  /** Of GET /health/db. */
  DATABASE_PROBE_MS: 1000,
  /** How often one that is away is looked for. */
  DATABASE_LOOK_MS: 1000,
  /** What a caller is told to wait while the database is away. */
  DATABASE_RETRY_AFTER_SECS: 2,

  // --- keys ---
  /** That can be used: GET /keys shows them all at once. */
  KEYS_PER_ACCOUNT_MAX: 1000,

  // --- edges ---
  /** An edge that was not heard for so long is taken for dead; heartbeats come every 5 s. With the job's pace: within 60 s. */
  EDGE_SILENT_MS: 45_000,
  /** Edges heard within this time are asked for pools. */
  EDGE_RECENT_MS: 60_000,
  EDGE_GROUPS_TIMEOUT_MS: 2000,
  EDGE_CALL_TIMEOUT_MS: 5000,
  /** The edge gives a service 30 s for it. */
  EDGE_REPLAY_TIMEOUT_MS: 35_000,
  /** Of an edge's answer. */
  EDGE_ANSWER_MAX_BYTES: 32 * MiB,
  /** Streams of changes at once. */
  CHANGE_STREAMS_MAX: 2000,
  CHANGES_ALIVE_MS: 10_000,
  /** How often changes are looked for even when PostgreSQL does not call. */
  CHANGES_POLL_MS: 1000,
  /** Changes read at once. */
  CHANGES_PAGE: 500,
  /** A stream that nobody reads is cut after so many signs of life. */
  CHANGES_UNREAD_MAX: 3,
  CHANGES_KEPT_DAYS: 7,
  /** Tunnels that one change names: an edge reads lines of at most 64 KiB. */
  CLOSED_TUNNELS_PER_CHANGE: 100,
  /** Accounts that edges are told of by name when their plan has changed in server.toml; of more, edges ask by themselves. */
  PLAN_CHANGES_MAX: 1000,
  KEY_USES_FLUSH_MS: 5000,
  /** last_used_at is written at most this often for a key. */
  KEY_USE_EVERY_MS: 60_000,
  /** Keys whose use waits to be written; more are not noted until the next flush. */
  KEY_USES_MAX: 50_000,

  // --- jobs ---
  CLOSE_LOST_EVERY_MS: 10_000,
  CLEAN_UP_EVERY_MS: 10 * 60_000,
  /** Rows that one statement of a clean-up deletes. */
  CLEAN_UP_ROWS: 5000,
  MAIL_KEPT_DAYS: 7,

  // --- accounts ---
  /** How often deletions of accounts are looked for, and how many go on at once. */
  DELETIONS_EVERY_MS: 1000,
  DELETIONS_AT_ONCE: 5,
  /** What a process that died had is taken by another one after so long. Longer than the calls to the payment processor. */
  DELETION_CLAIM_MS: 60_000,
  ACCESS_TOKEN_SECS: 15 * 60,
  REFRESH_TOKEN_SECS: 30 * 24 * 60 * 60,
  /** Two tabs, or an answer that was lost: the old token still works for so long, so many times. */
  REFRESH_GRACE_MS: 10_000,
  REFRESH_GRACE_USES: 5,
  /** Places where one account is logged in; one more ends the one that was used longest ago. */
  SESSIONS_PER_ACCOUNT_MAX: 100,
  USER_AGENT_MAX_CHARACTERS: 300,
  VERIFY_TOKEN_MS: 24 * 60 * 60_000,
  RESET_TOKEN_MS: 60 * 60_000,
  /** Of an invitation, and of the link with which somebody chooses the first password of an account that an operator made. */
  INVITE_MS: 7 * 24 * 60 * 60_000,
  /** Of Argon2id; a stored hash with less is made anew at the next login. */
  PASSWORD_MEMORY_KIB: 19 * KiB,
  PASSWORD_PASSES: 2,
  PASSWORD_LANES: 1,
  /** Passwords that wait to be hashed; more are refused with 503. */
  PASSWORDS_WAITING_MAX: 64,
  PASSWORDS_RETRY_AFTER_SECS: 2,
  /** Access tokens that were checked and are known until they run out; and users, for so long. */
  VERIFIED_TOKENS_MAX: 20_000,
  KNOWN_USERS_MAX: 20_000,
  KNOWN_USER_MS: 2000,
  /** How long keys that sign tokens are known: a rotation elsewhere is seen within it. And how often an unknown one makes us look. */
  SIGNING_KEYS_KNOWN_MS: 10_000,
  SIGNING_KEYS_LOOK_MS: 1000,
  /** A key that was replaced verifies for so long: four times as long as any token of it lives. */
  SIGNING_KEY_RETIRED_MS: 60 * 60_000,
  /** Addresses and accounts whose attempts are counted. */
  ATTEMPT_KEYS_MAX: 50_000,

  // --- billing ---
  /** Use that is told so long after the end of its month is still billed in it. Shorter than the processor keeps a month open. */
  MONTH_LATE_MS: 50 * 60_000,
  /** How often accounts over their spend cap are looked for; and how many are dealt with at once. */
  CAPS_EVERY_MS: 5000,
  CAPS_ROWS: 200,
  /** Edges are told again when tunnels of an account over its cap are still open after so long. */
  CAP_CLOSED_AGAIN_MS: 30_000,
  /** Accounts that are past due, or have more than their plan allows, are looked for so often; so many are dealt with at once. */
  ENTITLEMENTS_EVERY_MS: 5000,
  ENTITLEMENTS_ROWS: 200,
  /** Of a webhook of the payment processor. */
  WEBHOOK_BODY_MAX_BYTES: MiB,
  /** Accounts whose state at the processor is read and written at once. Each holds a database connection meanwhile. */
  ACCOUNT_LOCKS_MAX: 6,
  /** What a request waits for another one of its account. */
  ACCOUNT_LOCK_WAIT_MS: 15_000,
  /** What the processor's answers may take while an account is held. */
  ACCOUNT_LOCK_HELD_MS: 60_000,
  /** What a caller is told to wait then. */
  ACCOUNT_RETRY_AFTER_SECS: 2,
  IDEMPOTENCY_KEY_MAX_CHARACTERS: 255,
  IDEMPOTENCY_KEPT_MS: 24 * 60 * 60_000,
  /** What a second request with a key waits for the first one. */
  IDEMPOTENCY_WAIT_MS: 10_000,
  IDEMPOTENCY_LOOK_MS: 100,
  IDEMPOTENCY_RETRY_AFTER_SECS: 2,
  /** A request without an answer after so long has died with its process: the next one with its key is done anew. */
  IDEMPOTENCY_LEASE_MS: 90_000,
  /** Accounts that were not read at the processor for so long are read again: a webhook may be lost. */
  RESYNC_AFTER_MS: 60 * 60_000,
  RESYNC_EVERY_MS: 60_000,
  /** Accounts past due on a clock that is moved by hand, the simulator's, are read so often. */
  TEST_CLOCKS_EVERY_MS: 10_000,
  /** Accounts that one run reads. */
  RESYNC_ROWS: 200,
  PROCESSOR_EVENTS_KEPT_DAYS: 30,
  /** Which mails about a cap went out: a month needs its own, and some days more. */
  CAP_NOTICES_KEPT_DAYS: 62,
  /** Of one call to the payment processor, its retries included. */
  PROCESSOR_TIMEOUT_MS: 10_000,
  PROCESSOR_RETRIES: 2,
  /** What a caller is told to wait while the processor is away. */
  PROCESSOR_RETRY_AFTER_SECS: 5,

  // --- mail ---
  /** Mails that strangers can cause (verification, resend, reset) to one recipient, together. */
  STRANGERS_MAILS_PER_HOUR: 3,
  STRANGERS_MAILS_PER_DAY: 10,
  /** Requests for such mails that wait; more are answered and forgotten. */
  MAIL_REQUESTS_MAX: 10_000,
  /** Files of mails are there within 2 s of the request. */
  MAIL_REQUESTS_EVERY_MS: 500,
  MAIL_REQUESTS_BATCH: 100,
  MAIL_POLL_MS: 1000,
  /** Mails that one process holds, and how many of them it sends at once. */
  MAIL_BATCH: 100,
  MAIL_SENDS_MAX: 10,
  /** A mail that is being sent is not taken by another process for so long; claimed again while it is. What a process that died had waits for this. */
  MAIL_CLAIM_MS: 10_000,
  MAIL_SEND_TIMEOUT_MS: 45_000,
  MAIL_CONNECT_TIMEOUT_MS: 10_000,
  MAIL_RETRY_MIN_MS: 5000,
  MAIL_RETRY_MAX_MS: 60 * 60_000,
  MAIL_GIVE_UP_MS: 24 * 60 * 60_000,

  // --- billing: metering ---
  /** How often usage becomes meter events: at most one an account, a month and this time. */
  METER_CUT_EVERY_MS: 60_000,
  /** Accounts whose usage one statement cuts. */
  METER_CUT_ROWS: 1000,
  /** How often events that wait are looked for. */
  METER_POLL_MS: 5000,
  METER_BATCH: 20,
  METER_CALL_TIMEOUT_MS: 5000,
  /** An event that is being sent is not taken by another process for so long. Longer than its call. */
  METER_CLAIM_MS: 6000,
  METER_RETRY_MIN_MS: 5000,
  METER_RETRY_MAX_MS: 10 * 60_000,
  /** The processor forgets an identifier after 24 h: one that was tried so long ago is first looked for in its sums. */
  METER_COMPARE_AFTER_MS: 20 * 60 * 60_000,
  /** The processor finalises a month's invoice an hour after its end: usage reported later goes on the next one. */
  METER_MONTH_OPEN_MS: 55 * 60_000,
  /** What reporting the rest of one account may take: shorter than the processor waits for us. */
  METER_FLUSH_MS: 8000,
  METER_FLUSH_LOOK_MS: 200,
  /** How an invoice came about can be looked up for so long. */
  METER_EVENTS_KEPT_DAYS: 100,
} as const;
