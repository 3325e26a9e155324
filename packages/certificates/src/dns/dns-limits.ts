// Bounds shared by several files of this package, or with other packages.

const KiB = 1024;

export const DNS_LIMITS = {
  /** of a question: a name, a type, and what else a resolver says of itself */
  QUERY_MAX_BYTES: 4 * KiB,
} as const;
