// Bounds shared by several files of this package, or with other packages.

export const PEER_LIMITS = {
  /** addresses that one side offers; more would only be probes into the dark */
  PEER_CANDIDATES_MAX: 8,
} as const;
