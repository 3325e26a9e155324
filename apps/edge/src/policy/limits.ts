// Bounds shared by several files of this folder.

/** entries of each cache of policies: known passwords, opened login cookies, verified tokens; the least used go first, those of accounts with more than a quarter before others */
export const POLICY_CACHE_ENTRIES_MAX = 10_000;
/** characters that the entries of one such cache may hold together */
export const POLICY_CACHE_CHARS_MAX = 16 * 1024 * 1024;
/** a sealed cookie with its name: browsers keep no longer one */
export const LOGIN_COOKIE_MAX_BYTES = 4 * 1024;
