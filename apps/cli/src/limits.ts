// Bounds shared by several files of this package, or with other packages.

export const CLI_LIMITS = {
  /** for the head of a request and for the whole of it: who is slower is cut off */
  AGENT_REQUEST_TIMEOUT_MS: 5000,
  /** how often slow requests are looked for */
  AGENT_LOOK_EVERY_MS: 1000,
  /**
   * lines that a client keeps for `tunnel logs`; the oldest give way
   * @limit tunnels: Log lines kept for `tunnel logs` | the oldest line is dropped
   */
  AGENT_LOG_LINES_MAX: 1000,
  /** how long a command waits for the answer of a running client that hangs */
  AGENT_ANSWER_TIMEOUT_MS: 5000,
  /** the answer to a replay: a local service has 30 s */
  REPLAY_ANSWER_TIMEOUT_MS: 40_000,
  /** what the answer to a wait for a request may take longer than the wait itself */
  WAIT_ANSWER_SLACK_MS: 10_000,
  /** from one look of `tunnel requests -f` to the next */
  REQUESTS_LOOK_EVERY_MS: 1000,
} as const;
