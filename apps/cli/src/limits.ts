// Limits shared by several files of this package, or with another package.

export const CLI_LIMITS = {
  /** Time limit for the head of a request to the agent, and for the whole request. A slower caller is disconnected. */
  AGENT_REQUEST_TIMEOUT_MS: 5000,
  /** Interval of the agent's check for slow requests. */
  AGENT_LOOK_EVERY_MS: 1000,
  /**
   * Maximum log lines kept by a client for `tunnel logs`. The oldest lines are dropped first.
   * @limit tunnels: Log lines kept for `tunnel logs` | the oldest line is dropped
   */
  AGENT_LOG_LINES_MAX: 1000,
  /** Response timeout of a command that calls a running client, in case the client hangs. */
  AGENT_ANSWER_TIMEOUT_MS: 5000,
  /** Response timeout of a replay. The local service alone has 30 s. */
  REPLAY_ANSWER_TIMEOUT_MS: 40_000,
  /** Additional response time after the wait for a request has ended. */
  WAIT_ANSWER_SLACK_MS: 10_000,
  /** Interval between two queries of `tunnel requests -f`. */
  REQUESTS_LOOK_EVERY_MS: 1000,
} as const;
