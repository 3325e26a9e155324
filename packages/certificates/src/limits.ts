// Bounds shared by several files of this package, or with other packages.

export const CERTIFICATES_LIMITS = {
  /**
   * a proof that is absent for so long is given up: it is time to read the mail and to set a record again
   * @limit accounts: Custom domain, time with a missing DNS record after verification | the domain lapses
   */
  DOMAIN_ABSENT_MS: 7 * 24 * 60 * 60_000,
  /** orders of one account under way at once in one process. An order can take minutes, so one of the four places stays free for other accounts */
  CERTIFICATE_ORDERS_AT_ONCE_PER_ACCOUNT: 3,
} as const;
