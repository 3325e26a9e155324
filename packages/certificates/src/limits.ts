// Limits shared by several files of this package or with other packages.

export const CERTIFICATES_LIMITS = {
  /**
   * Time until a verified domain without its proof lapses, long enough to read the mail and set the record again.
   * @limit accounts: Custom domain, time with a missing DNS record after verification | the domain lapses
   */
  DOMAIN_ABSENT_MS: 7 * 24 * 60 * 60_000,
  /**
   * Maximum concurrent orders of an account per process. An order can take minutes, so one of the four slots stays free for other accounts.
   */
  CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT: 3,
} as const;
