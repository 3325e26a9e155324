// Bounds of what an edge keeps and does for policies: EDGE_LIMITS has them.

const KiB = 1024;
const MiB = 1024 * 1024;

export const POLICY_LIMITS = {
  // --- policies: what is kept of them ---
  /** about what all policies of an edge take of its memory, as JSON and made ready, equal ones once, with those that a lost client may come back to; further ones are refused */
  POLICIES_MAX_BYTES: 256 * MiB,
  /** of it what one account’s may take: a quarter; nearly at the bound of the edge, those go on who have less than the mean */
  POLICIES_MAX_BYTES_PER_ACCOUNT: 64 * MiB,
  // --- policies: passwords, logins and providers ---
  /** after which they are told to */
  PASSWORD_BUSY_RETRY_SECS: 2,
  /** a password that was right is not checked again before this, counted from its last use */
  PASSWORD_KNOWN_MS: 600_000,
  /** how long a connection remembers who its visitor was found to be, before that is looked up again */
  VISIT_MEMORY_MS: 10_000,
  /** a longer password, token or login cookie is looked up each time */
  VISIT_MEMORY_MAX_CHARS: 4_096,
  /** entries of each cache of policies: known passwords, opened login cookies, verified tokens; the least used go first, those of accounts with more than a quarter before others */
  POLICY_CACHE_ENTRIES_MAX: 10_000,
  /** characters that the entries of one such cache may hold together */
  POLICY_CACHE_CHARS_MAX: 16 * MiB,
  /** an opened login cookie is not opened again before this */
  LOGIN_COOKIE_KNOWN_MS: 600_000,
  /** a sealed cookie with its name: browsers keep no longer one */
  LOGIN_COOKIE_MAX_BYTES: 4 * KiB,
  /** logins that have ended, kept so that none ends twice; the oldest is forgotten first */
  LOGINS_USED_KEPT_MAX: 10_000,
  /** keys that were derived from the login secrets: one for each host, owner and provider; the least used go first */
  LOGIN_KEYS_KEPT_MAX: 10_000,
  /** a verified token is not verified again before this */
  JWT_KNOWN_MS: 300_000,
  /**
   * a longer token is not looked at
   * @limit policies: JWT, length | the token is not accepted
   */
  JWT_MAX_CHARS: 8 * KiB,
  /** keys of a set that are tried for a token that names none of them */
  JWT_KEYS_TRIED_MAX: 8,
  /** how far the clocks of a provider and of the edge may differ */
  JWT_SKEW_SECS: 30,
  /**
   * a call to a provider that is not answered by then has failed, its wait for others included
   * @limit policies: Call to a login provider, time | 502 `POLICY_PROVIDER_AWAY`
   */
  PROVIDER_CALL_MS: 5000,
  /** no answer of a provider is longer */
  PROVIDER_ANSWER_MAX_BYTES: 256 * KiB,
  /** what a provider says of itself is asked for again after this */
  PROVIDER_METADATA_FRESH_MS: 3600 * 1000,
  /** its keys are asked for again after this */
  PROVIDER_KEYS_FRESH_MS: 600_000,
  /** keys of one set; a longer one is no set of keys */
  PROVIDER_KEYS_MAX: 100,
  /** both are good for this long while it is away */
  PROVIDER_STALE_MS: 24 * 3600 * 1000,
  /** a token that names an unknown key has the keys asked for again, but not more often than this; nor is a provider that is away asked more often while old answers are good */
  PROVIDER_KEYS_AGAIN_MS: 10_000,
  /** one that is away and of which nothing is known is not asked again before this */
  PROVIDER_RETRY_MS: 1000,
  /** documents of providers that are kept, each tenant’s own; the least used go first, those of accounts with more than a quarter before others */
  PROVIDER_DOCUMENTS_MAX: 10_000,
  /** how often limiters are looked through for keys that are idle */
  LIMITER_SWEEP_MS: 30_000,
} as const;
