// Limits used by several files of this package or by other packages.

export const PEER_LIMITS = {
  /** Maximum number of addresses offered by a side. More would only waste probes. */
  PEER_CANDIDATES_MAX: 8,
} as const;
