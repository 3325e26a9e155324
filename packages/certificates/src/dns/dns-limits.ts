// Limits shared by several files of this package or with other packages.

const KiB = 1024;

export const DNS_LIMITS = {
  /** Maximum size of a query: a name, a type, and the resolver's options. */
  QUERY_MAX_BYTES: 4 * KiB,
} as const;
