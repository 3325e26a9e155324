// Bounds that several files of this package share, or other packages know. Every other bound stands beside its use.

export const PEER_LIMITS = {
  /** addresses that one side offers; more would only be probes into the dark */
  PEER_CANDIDATES_MAX: 8,
} as const;
