// The bounds of requests to URLs that strangers name.

export const RUNTIME_LIMITS = {
  // --- URLs that strangers name ---
  /** a longer URL is not read at all */
  FETCH_URL_MAX_CHARS: 2048,
  /** the first of two questions to a name server; the second one waits twice as long */
  FETCH_DNS_TRY_MS: 1000,
  /** 100 Continue, 103 Early Hints: honest servers send one or two */
  FETCH_EARLY_HEADS_MAX: 10,
} as const;
