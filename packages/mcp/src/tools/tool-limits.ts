// Every bound of the tools of models, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;

export const MCP_TOOL_LIMITS = {
  // --- results ---
  /**
   * a result as it goes out, structured and as text: a model pays for every word of it
   * @limit mcp: Tools: result, size | the result is shortened and says so
   */
  TOOL_RESULT_MAX_BYTES: 256 * KiB,
  /** of a failure in words, and of what a caller said that is quoted in it: a line, not a page */
  TOOL_MESSAGE_MAX_CHARS: 1000,
  /** of a caller's own word (a field, a name) that is quoted */
  TOOL_QUOTE_MAX_CHARS: 80,

  // --- arguments ---
  /** an id or a name of a tunnel, the id of a request, a host: the longest of them is a host name of 253 characters */
  TOOL_NAME_MAX_CHARS: 260,
  /** a part of a path that is looked for */
  TOOL_PATH_PART_MAX_CHARS: 1024,
  /** tunnels in one answer unless more were asked for: a page that a model reads at once */
  TOOL_TUNNELS_DEFAULT: 20,
  /** tunnels in one answer: what the log of the platform gives */
  TOOL_TUNNELS_MAX: 100,
  /** requests in one answer unless more were asked for */
  TOOL_REQUESTS_DEFAULT: 20,
  /**
   * requests in one answer: what an edge keeps of one tunnel is not much more
   * @limit mcp: Tools: requests in one result | older requests are left out
   */
  TOOL_REQUESTS_MAX: 50,

  // --- waiting ---
  /** how long a request is waited for unless it was said: what most hosts allow a call */
  TOOL_WAIT_DEFAULT_MS: 60_000,
  /**
   * the longest wait: a person who has to press a button somewhere is back by then
   * @limit mcp: Tools: longest wait for a request | the tool returns without one
   */
  TOOL_WAIT_MAX_MS: 300_000,
  /** between two reports of progress: they may be 5 s apart, and timers are late on a busy machine */
  TOOL_PROGRESS_INTERVAL_MS: 4500,

  // --- completion ---
  /** values in one answer: the protocol allows no more */
  TOOL_COMPLETIONS_MAX: 100,
} as const;
