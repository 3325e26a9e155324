// Limits shared by several files of the policy folder.

/**
 * Maximum number of entries in each policy cache (accepted passwords, opened login cookies, verified tokens). The least recently used
 * entries are evicted first; accounts with more than a quarter of the cache lose entries before other accounts.
 */
export const POLICY_CACHE_ENTRIES_MAX = 10_000;
/** Maximum total size of the entries of a policy cache, in characters. */
export const POLICY_CACHE_CHARS_MAX = 16 * 1024 * 1024;
/** Maximum size of a sealed login cookie including its name. Browsers do not store larger cookies. */
export const LOGIN_COOKIE_MAX_BYTES = 4 * 1024;
