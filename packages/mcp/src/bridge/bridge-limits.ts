// Every bound of the bridge to a stdio MCP server, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const BRIDGE_LIMITS = {
  // --- published MCP server ---
  /**
   * one message, from a caller and from the server; a larger one is refused, and the others go on
   * @limit mcp: Published server: message, size | the message is refused
   */
  MESSAGE_MAX_BYTES: 1 * MiB,
  /**
   * calls under way at the server, of all callers together; more are told to come back
   * @limit mcp: Published server: calls at once | 429 with Retry-After
   */
  CALLS_MAX: 32,
  /** callers that wait for changes of the lists (`subscriptions/listen`) */
  SUBSCRIPTIONS_MAX: 32,
  /** progress that one call may report; what comes then is left out, since a caller that does not read it lets it pile up */
  PROGRESS_MAX_BYTES: 1 * MiB,
  /**
   * how long the server may take to answer a call, from its last sign of progress
   * @limit mcp: Published server: call, time since its last progress | the call fails
   */
  CALL_TIMEOUT_MS: 600_000,
  /** how long a call may take at all, however often it reports progress */
  CALL_TOTAL_MS: 3_600_000,
  /**
   * how long the server may take to start and say what it is: `npx` fetches it first
   * @limit mcp: Published server: start, time | the start has failed, and is tried again
   */
  START_TIMEOUT_MS: 60_000,
  /** silence to the question of the newer revision; then it is asked as the older one has it */
  PROBE_TIMEOUT_MS: 10_000,
  /** pages of the list of tools that are read when the server starts; one with more is not served */
  TOOL_PAGES_MAX: 64,
  /** pause before the server is started again; doubled each time it ends early */
  RESTART_FIRST_MS: 1000,
  /** the longest of these pauses */
  RESTART_LONGEST_MS: 30_000,
  /** a server that ran for so long has not ended early: the next pause is the first again */
  RESTART_FORGET_AFTER_MS: 60_000,
  /** from the end of its stdin to SIGTERM, and from there to SIGKILL */
  STOP_STEP_MS: 1000,
  /** after the program has ended: output of it that is still on the way, or a pipe that a program of its own holds */
  DRAIN_AFTER_EXIT_MS: 500,
  /** a program that has closed its stdout or stdin and does not end: then it is ended, and started again */
  CLOSED_PIPE_MS: 1000,
  /** a line of its stderr; the rest of it is left out */
  STDERR_LINE_MAX_BYTES: 4 * KiB,
  /** lines of its stderr that are passed on within a second; more are counted */
  STDERR_LINES_PER_SECOND: 100,
  /** bytes that wait for the server to read them: as many messages as it has calls; then it counts as stuck and is started again */
  UNREAD_MAX_BYTES: 33 * MiB,
} as const;
