// Limits shared by several files of the policy schema.

/**
 * Maximum addresses and networks in a policy, over all lists.
 * @limit policies: Addresses and networks in a policy | `POLICY_INVALID`
 */
export const POLICY_NETWORKS_MAX = 1000;
/**
 * Maximum users with a password in a policy.
 * @limit policies: Users with a password in a policy | `POLICY_INVALID`
 */
export const POLICY_USERS_MAX = 100;
/**
 * Maximum tokens in a policy.
 * @limit policies: Tokens in a policy | `POLICY_INVALID`
 */
export const POLICY_TOKENS_MAX = 100;
/**
 * Maximum e-mail addresses and domains in a policy, together.
 * @limit policies: Email addresses and domains in sign-in rules | `POLICY_INVALID`
 */
export const POLICY_PEOPLE_MAX = 500;
