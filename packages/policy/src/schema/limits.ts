// Bounds shared by several files of this folder.

/**
 * addresses and networks of one policy, all its lists together
 * @limit policies: Addresses and networks in a policy | `POLICY_INVALID`
 */
export const POLICY_NETWORKS_MAX = 1000;
/**
 * names with a password in one policy
 * @limit policies: Users with a password in a policy | `POLICY_INVALID`
 */
export const POLICY_USERS_MAX = 100;
/**
 * tokens of one policy
 * @limit policies: Tokens in a policy | `POLICY_INVALID`
 */
export const POLICY_TOKENS_MAX = 100;
/**
 * e-mail addresses and domains of one policy, together
 * @limit policies: Email addresses and domains in sign-in rules | `POLICY_INVALID`
 */
export const POLICY_PEOPLE_MAX = 500;
