// Every bound of the embedded database, by name.

export const POSTGRES_BOUNDS = {
  /** Recovery after a crash replays at most a gigabyte of log; a slow disk needs its time for that. */
  START_TIMEOUT_MS: 120_000,
  INIT_TIMEOUT_MS: 120_000,
  /** `fast`: open transactions are rolled back and everything is written. */
  FAST_STOP_MS: 10_000,
  /** `immediate`: nothing more is written; the next start replays the log. */
  IMMEDIATE_STOP_MS: 3000,
  /** After the server died: doubled with each start that fails, up to the longest. */
  RESTART_FIRST_MS: 100,
  RESTART_LONGEST_MS: 5000,
  /** Workers of a server that was killed hold its memory for a moment; a first start waits for them this long. */
  LEFTOVERS_MS: 15_000,
  POLL_MS: 20,
  /** The shortest of the systems we run on: 104 on macOS with its end mark, 108 on Linux. */
  SOCKET_PATH_BYTES: 103,
  LOG_LINE_CHARS: 1000,
  KEPT_LOG_LINES: 20,
} as const;
