// Every bound of the command line and of the agent in a running client, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const CLI_LIMITS = {
  // --- output ---
  /** from one write of request lines to the next, where there is no terminal; the first after a pause is written at once */
  STDOUT_EVERY_MS: 50,
  /** what waits for whoever reads stdout slowly; lines of requests beyond it are left out and counted */
  STDOUT_LAG_MAX_BYTES: 1 * MiB,
  /** how long the end of a command waits for a slow reader of what it has written */
  STDOUT_LAST_MS: 1000,

  // --- agent ---
  /** the longest path of a Unix socket that every system takes, with room for the longest pid */
  AGENT_SOCKET_PATH_MAX_BYTES: 100,
  /** connections to the socket of one client at once; more are closed as they come */
  AGENT_CONNECTIONS_MAX: 32,
  /** those that follow events or logs, so that there is always room to ask something */
  AGENT_FOLLOWERS_MAX: 16,
  /** the body of a request; a tunnel in words is a few KiB */
  AGENT_BODY_MAX_BYTES: 256 * KiB,
  /** for the head of a request and for the whole of it: who is slower is cut off */
  AGENT_REQUEST_TIMEOUT_MS: 5000,
  /** how often slow requests are looked for */
  AGENT_LOOK_EVERY_MS: 1000,
  /** events that wait for one follower; one that reads slower is cut off */
  AGENT_LAG_MAX_BYTES: 1 * MiB,
  /**
   * lines that a client keeps for `tunnel logs`; the oldest give way
   * @limit tunnels: Log lines that a client keeps for `tunnel logs` | the oldest line is dropped
   */
  AGENT_LOG_LINES_MAX: 1000,
  /** the answer of the edge to a tunnel that was added; then it is given up */
  AGENT_ADD_TIMEOUT_MS: 30_000,
  /** how long a command waits for the answer of a running client that hangs */
  AGENT_ANSWER_TIMEOUT_MS: 5000,
  /** that of a client that asks the edge first */
  AGENT_SLOW_ANSWER_TIMEOUT_MS: 40_000,
  /** the largest answer that a command reads: ten thousand tunnels */
  AGENT_ANSWER_MAX_BYTES: 16 * MiB,
  /** sockets that a command asks; whatever else is in the folder was not put there by clients */
  AGENT_SOCKETS_MAX: 256,

  // --- published MCP servers ---
  /** connections to the socket of one, which all come through the tunnel: a call each, and those that wait or are idle */
  MCP_PUBLISH_CONNECTIONS_MAX: 128,
  /** for the whole of a request to it: with a message of 1 MiB, time for the slowest line, and callers that drip do not keep the others out */
  MCP_PUBLISH_REQUEST_MS: 30_000,
  /** the same command that is published at the same time, by one user */
  MCP_PUBLISH_SOCKETS_MAX: 8,

  // --- tunnels of an account ---
  /** live tunnels that `tunnel list`, `requests` and `replay` read; more are not looked at */
  ACCOUNT_TUNNELS_MAX: 10_000,
  /** tunnels that are asked for a request at the same time */
  ACCOUNT_TUNNELS_ASKED_AT_ONCE: 8,
  /** the answer to a replay: a local service has 30 s */
  REPLAY_ANSWER_TIMEOUT_MS: 40_000,
  /** what the answer to a wait for a request may take longer than the wait itself */
  WAIT_ANSWER_SLACK_MS: 10_000,
  /** from one look of `tunnel requests -f` to the next */
  REQUESTS_LOOK_EVERY_MS: 1000,
  /** ids of requests that `tunnel requests -f` has shown; an edge keeps fewer, so none is shown twice */
  REQUESTS_SEEN_MAX: 1000,

  // --- models (`tunnel mcp`) ---
  /**
   * tunnels that a model has open at once: what it forgets, it meets again soon
   * @limit mcp: `tunnel mcp`: tunnels that a model has open | `MCP_TUNNEL_LIMIT`
   */
  MCP_TUNNELS_MAX: 10,
  /** one message on stdin: an argument of a MiB is refused by its tool, in words */
  MCP_LINE_MAX_BYTES: 4 * MiB,
  /** taken from stdin while nobody reads stdout; its end may come behind that */
  MCP_HELD_MAX_BYTES: MiB,
  /** calls under way; each of them answers with 256 KiB at most */
  MCP_CALLS_MAX: 256,
  /** the answer of the edge to a tunnel that a model asked for; then it is given up */
  MCP_OPEN_TIMEOUT_MS: 30_000,
  /** from the end of stdin, or a signal, to the end of the process, whatever the edge does */
  MCP_CLOSE_TIMEOUT_MS: 2000,
  /** of that: for visitors who are being served, and for whoever reads our answers slowly */
  MCP_DRAIN_MS: 1000,
  /** how often it is looked whether the program that started the server is still there */
  MCP_PARENT_LOOK_EVERY_MS: 1000,

  /** requests of a tunnel that are asked of the platform; its tool gives no more at once */
  PLATFORM_REQUESTS_MAX: 50,
  /** the same of tunnels */
  PLATFORM_TUNNELS_MAX: 100,

  // --- own domains ---
  /** from one look of `tunnel domains add --wait` to the next: the platform looks at the DNS, at its own pace */
  DOMAIN_LOOK_EVERY_MS: 1000,
  /** until `tunnel domains check` asks again for a domain that was looked at a moment ago; the platform has the same 5 s */
  DOMAIN_CHECK_AGAIN_MS: 5000,
  /** so often in all: the looks of the platform itself come in between */
  DOMAIN_CHECK_TRIES: 4,

  // --- login ---
  /** regions of a platform that `tunnel login` offers; of more the first by id */
  REGIONS_MAX: 1000,
  /** an id of a region, and its name as it is shown: an edge takes no longer id */
  REGION_TEXT_MAX_CHARS: 100,
  /** an API key that a platform hands out; one of ours has 43 */
  NEW_KEY_MAX_CHARS: 1024,

  // --- service ---
  /** how long `tunnel service` waits until a client is ready: a server that is not there has ended it before */
  SERVICE_START_TIMEOUT_MS: 45_000,
  /** the last words of a program of systemd that are kept for its problem */
  SERVICE_OUTPUT_MAX_CHARS: 64 * KiB,
} as const;
