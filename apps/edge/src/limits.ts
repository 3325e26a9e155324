// Every bound of an edge, by name. docs/limits.md is written from these lines; a test compares the two.
import { CAPTURES_KEPT_MAX } from '@tunnel/contract';
import { CERTIFICATE_LIMITS } from './certificate-limits.ts';
import { NAME_LIMITS } from './name-limits.ts';
import { POLICY_LIMITS } from './policy-limits.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export const EDGE_LIMITS = {
  // --- control connection ---
  /** how long the answer to a close frame is awaited before the socket is destroyed */
  CONTROL_CLOSE_TIMEOUT_MS: 2000,
  /** request heads on the control port: an upgrade needs a few hundred bytes */
  CONTROL_HEAD_MAX_BYTES: 8 * KiB,
  /** registrations of one connection that wait; with so many it is not read until half of them are done. A client has no more than half of that under way */
  CONTROL_REGISTRATIONS_WAITING: 512,
  /** the same by their characters, which one registration with a policy can have 64 Ki of */
  CONTROL_REGISTRATIONS_WAITING_CHARS: 256 * KiB,
  /** a longer frame costs one more token for each of these: to read 64 KiB of JSON takes as long as dozens of pings */
  CONTROL_FRAME_CHARS_PER_TOKEN: 4 * KiB,
  /** a registration with a policy, which is judged and made ready, counts as one more for each of these: the largest take some 15 ms */
  CONTROL_POLICY_CHARS_PER_TOKEN: 512,
  /** frames of one control connection in one turn of the event loop; the others have theirs in between */
  CONTROL_FRAMES_PER_TURN: 64,
  /** for each of these a frame counts as one more in its turn: of long ones few are taken in one */
  CONTROL_FRAME_CHARS_IN_TURN: 512,
  /** parts of one WebSocket message; clients send it in one */
  CONTROL_FRAGMENTS_MAX: 16,
  /** while so much waits for a client, it is not sent what it can do without, such as requests that the edge answered */
  CONTROL_OFFERS_QUEUE_BYTES: 64 * KiB,
  /** requests that the edge answered itself, told one by one to all clients of an account; the rest is told as numbers */
  EDGE_ANSWERS_PER_SECOND_ACCOUNT: 400,
  /**
   * the name and the port of a lost session are held for it this long
   * @limit tunnels: Lost client, time for which its names and ports are kept | another client can take them
   */
  RESUME_WINDOW_MS: 30_000,
  /** after a start within this time of the last run's end, its endpoints are held for those who had them, for as long again */
  RETURN_WINDOW_MS: 30_000,
  /** how often the file of endpoints says that the edge lives: by it the next run knows when this one ended */
  ENDPOINTS_FILE_ALIVE_MS: 5000,
  /** changes that wait for the disk; with more, the whole file is written anew instead */
  ENDPOINTS_FILE_QUEUE_CHARS: 1 * MiB,
  /** lines behind the last whole one; then the file is written anew */
  ENDPOINTS_FILE_TAIL_CHARS: 4 * MiB,
  /** a larger file is none of ours: a full edge has some 10 MB */
  ENDPOINTS_FILE_MAX_BYTES: 64 * MiB,
  /**
   * sessions of one edge, those that wait for their client included
   * @limit operator: Clients of one edge | `SESSION_LIMIT`
   */
  SESSIONS_MAX: 20_000,
  /**
   * of these of one account: a quarter. A key that comes and goes leaves each time one behind that waits
   * @limit tunnels: Clients of one account at one edge | `SESSION_LIMIT`
   */
  SESSIONS_PER_ACCOUNT: 5000,
  /** how often the edge looks for what has become due: pings, dead carriers, held ports */
  SESSION_TICK_MS: 1000,
  /** a port of the range that another program holds is not tried again before this */
  PORT_TAKEN_RETRY_MS: 10_000,

  // --- carriers ---
  /** one lost packet stalls one carrier only; more of them cost handshakes and memory */
  CARRIERS_PER_SESSION_DEFAULT: 4,
  /** a token is dialled with at once; an old one is somebody else’s */
  CARRIER_TOKEN_LIFE_MS: 30_000,

  // --- measuring the path ---
  /** of one request to /_speed, either way: a fast path is busy with it for a second */
  SPEED_MAX_BYTES: 16 * MiB,
  /**
   * of all of an account in a minute: a few looks at the path, and no way to use the edge as one
   * @limit tunnels: Bytes of speed tests (`tunnel doctor`) of one account per minute | `CONTROL_SPEED_LIMIT`
   */
  SPEED_BYTES_PER_MINUTE: 64 * MiB,
  /** that minute */
  SPEED_WINDOW_MS: 60_000,
  /** what is sent at a time: the next piece when this one has left */
  SPEED_CHUNK_BYTES: 64 * KiB,
  /** a request that is not over by then is cut off */
  SPEED_TIMEOUT_MS: 30_000,

  // --- visitors ---
  /** connections the system accepts on our behalf while we are busy */
  VISITOR_BACKLOG: 4096,
  /** bytes of a visitor that wait until the local connection is open */
  PRECONNECT_BUFFER_BYTES: 64 * KiB,
  /** TCP keep-alive towards visitors: one that vanished is noticed some minutes later */
  VISITOR_KEEPALIVE_MS: 60_000,
  /** how long a visitor of a tcp tunnel whom nobody serves may take to begin an HTTP request and get an answer; else it is reset */
  TCP_HTTP_FALLBACK_MS: 300,

  // --- visitors of udp tunnels ---
  /** what the kernel may keep of a port while we are busy, asked for; it gives no more than `net.core.rmem_max` */
  UDP_RECEIVE_BUFFER_BYTES: 4 * MiB,
  /** replies that wait behind the kernel’s buffer of one port; more are dropped (`path`), as late is worse than lost */
  UDP_SEND_QUEUE_BYTES: 256 * KiB,
  /** memory from which replies are sent, shared by all ports; it holds two of the largest */
  UDP_SEND_BLOCK_BYTES: 128 * KiB,
  /** datagrams of a new flow that wait while it is decided whether it may come; further ones are dropped (`limit`) */
  UDP_DECIDING_DATAGRAMS: 8,
  /** the same by their size */
  UDP_DECIDING_BYTES: 16 * KiB,
  /** flows of all udp tunnels together, at some 3 KB each; when all are taken, the account with the most beyond its `account_share` gives one back (`share`) */
  UDP_FLOWS_MAX: 200_000,
  /** refused flows of all udp tunnels that are remembered, at some 600 bytes each; further ones are asked for again with each datagram */
  UDP_DENIED_MAX: 50_000,
  /** how often flows that have been silent for too long are looked for; one timer for all */
  UDP_TICK_MS: 1000,
  /** how often the addresses of this machine are looked up, whose datagrams may be a loop */
  UDP_OWN_ADDRESSES_MS: 10_000,

  // --- peers of p2p tunnels ---
  /** relay streams of one peer at once: a client has one, and the next one while the last still ends; no peer takes all connections of its tunnel */
  P2P_RELAYS_PER_PEER: 16,

  // --- groups ---
  /** members of a group that one visitor may be tried with; in a large pool that is down, a flood of visitors must not become a larger one of dials */
  MEMBER_TRIES_MAX: 64,
  /** from the first member that did not take a visitor: later no further one is begun, as each may take the time of a dial */
  MEMBER_TRIES_MS: 60_000,

  // --- HTTP visitors ---
  /**
   * how long a visitor may take to the next request on the same connection
   * @limit visitors: HTTP connection, time without a request | the connection is closed
   */
  HTTP_KEEP_ALIVE_MS: 75_000,
  /** bytes behind a request that is not answered yet: a few pipelined requests, or early ones behind an upgrade; with more the connection ends behind the answer */
  HTTP_EARLY_BYTES: 64 * KiB,
  /** how long it may take to find out where a request goes */
  HTTP_ROUTE_TIMEOUT_MS: 10_000,
  /** how long the rules of a tunnel may take for one request: a password, a key set, a login at its provider, or a body that is held */
  POLICY_DECISION_TIMEOUT_MS: 60_000,
  /** a body that is held for a signature: one that is not whole by then is cut off with its visitor */
  POLICY_HELD_BODY_MS: 30_000,
  /** bytes of all such bodies of an edge; one that finds no room is answered 503 */
  POLICY_HELD_BYTES_MAX: 64 * MiB,
  /** the same for one account: a quarter; nearly at the bound of the edge, those go on who hold less than the mean */
  POLICY_HELD_BYTES_PER_OWNER: 16 * MiB,
  /** a held body is passed on in pieces of this size, as fast as its service takes them */
  POLICY_HELD_PIECE_BYTES: 64 * KiB,
  /**
   * a visitor that takes no byte of its answer for so long while bytes wait is reset; the largest gap of a poor mobile network is far below
   * @limit visitors: HTTP response, time in which the visitor reads no byte of it | the connection is reset
   */
  HTTP_SEND_TIMEOUT_MS: 300_000,
  /**
   * an upload that its service does not take: without a byte either way for so long both sides are reset
   * @limit visitors: HTTP upload, time in which the service reads no byte of it | the connection is reset on both sides
   */
  HTTP_STALLED_BODY_MS: 300_000,
  /** of our own for one visitor that does not read (answers, heads, trailers), beyond what the kernel holds; a service’s data is bounded by the credit of its stream */
  HTTP_QUEUE_MAX_BYTES: 256 * KiB,
  /**
   * part of the machine’s memory that bytes waiting for HTTP visitors may take together; over it the largest queue goes first
   * @limit operator: Part of the machine's memory for responses that visitors have not read | the largest queue is closed
   */
  HTTP_QUEUES_MEMORY_SHARE: 0.25,
  /** heads before the final one of a response: progress reports are some; more are a flood that HTTP/2 has no credit for */
  HTTP_INTERIM_HEADS_MAX: 64,
  /** the same by their size */
  HTTP_INTERIM_BYTES_MAX: 64 * KiB,
  /** an answer that is cut off: after this the reset comes alone, since some visitors take one right behind bytes for an end */
  HTTP_CUT_DELAY_MS: 1000,
  /** after our last word the visitor has this long to read it and to close */
  HTTP_LINGER_MS: 2_000,
  /** the same for one that still sends its body, and will read when that is out */
  HTTP_LINGER_MAX_MS: 30_000,
  /** open connections to one local service that wait for the next request */
  HTTP_IDLE_STREAMS_PER_TUNNEL: 256,
  /** how long such a connection waits; most services hang up after 5 s */
  HTTP_IDLE_STREAM_MS: 4_000,
  /** a request that cannot be sent twice takes only a connection that was in use this recently */
  HTTP_IDLE_STREAM_UNSAFE_MS: 1_000,

  // --- TLS and HTTP/2 visitors ---
  /**
   * a connection to the https port that is not through its handshake by then is closed; the time to read its first message, and to wait for a certificate, is part of it
   * @limit visitors: TLS handshake, time | the connection is closed
   */
  TLS_HANDSHAKE_TIMEOUT_MS: 10_000,
  /** handshakes under way at once, from the first byte on; above this the one that takes longest is closed */
  TLS_HANDSHAKES_MAX: 4096,
  /** certificates by name that are ready for handshakes, at some 30 KB each; the one that nobody asked for longest is made ready again when it is */
  TLS_CONTEXTS_MAX: 1000,
  /** certificates made ready in a second, at some 1.4 ms each; a handshake that needs one more waits for its turn */
  TLS_CONTEXTS_PER_SECOND: 200,
  /** how long a certificate is shown that was made here for a name of this machine; half of its life */
  TLS_MADE_KEPT_MS: 45 * 86_400_000,
  /** how often the edge looks whether its certificate has been renewed */
  TLS_FILES_LOOK_MS: 2000,
  /** how often the edge looks whether the day is over whose key sealed the tickets of TLS sessions */
  TLS_TICKETS_LOOK_MS: 60_000,
  /**
   * requests of one visitor at once; browsers are content with 100
   * @limit visitors: HTTP/2 requests at once on one connection | further requests wait in the browser
   */
  HTTP2_STREAMS_PER_CONNECTION: 128,
  /** of one request body, what may be on its way while the service does not read */
  HTTP2_STREAM_WINDOW_BYTES: 256 * KiB,
  /** of all request bodies of a connection, what may be on its way */
  HTTP2_CONNECTION_WINDOW_BYTES: 1 * MiB,
  /**
   * a head above this resets its stream; it leaves room to answer 431 to one that is too large for HTTP/1.1
   * @limit visitors: HTTP/2 request head, size | the request is reset
   */
  HTTP2_HEAD_MAX_BYTES: 64 * KiB,
  /** header fields; above this the stream is reset, as with the size */
  HTTP2_FIELDS_MAX: 256,
  /** what node may hold for one connection; over it new streams are refused */
  HTTP2_SESSION_MEMORY_BYTES: 16 * MiB,
  /** heads and answers of our own that wait for one visitor; over it its next requests wait until these are out */
  HTTP2_OUTBOUND_FULL_BYTES: 1 * MiB,
  /** over this, whatever else it does, the connection is cut */
  HTTP2_OUTBOUND_MAX_BYTES: 4 * MiB,
  /** so is one that was full for so long and has taken nothing */
  HTTP2_OUTBOUND_STALLED_MS: 30_000,
  /**
   * requests that a visitor takes back before they are answered; over it the connection is closed (rapid reset)
   * @limit visitors: HTTP/2 requests that one connection cancels within 10 s | the connection is closed
   */
  HTTP2_RESETS_MAX: 500,
  /** the time in which they are counted: a page left behind cancels some hundred at once */
  HTTP2_RESETS_WINDOW_MS: 10_000,
  /** pings and settings of one connection; gRPC measures its path with many */
  HTTP2_SIGNALS_PER_SECOND: 5000,
  /** without a byte of a visitor, after this it is looked whether its connection still works */
  HTTP2_QUIET_MS: 30_000,

  // --- local services that speak HTTP/2 ---
  /** connections to one local service that speaks HTTP/2; further calls share them */
  H2C_SESSIONS_PER_TUNNEL: 16,
  /** calls on one such connection before another one is opened */
  H2C_STREAMS_PER_SESSION: 100,
  /** how long such a connection waits for the next call */
  H2C_SESSION_IDLE_MS: 60_000,
  /** nobody needs such a connection, or one of its calls, any more: so long its service may take to let go of it before the connection is cut */
  H2C_LINGER_MS: 5_000,
  /** bytes of such a connection that wait on their way to and from the stream */
  H2C_STREAM_BUFFER_BYTES: 64 * KiB,

  // --- captured requests ---
  /**
   * the last requests of a tunnel that are kept for a look and a replay
   */
  CAPTURES_PER_TUNNEL: CAPTURES_KEPT_MAX,
  /** of these that a rule has answered: strangers at the door do not push out those who came in */
  CAPTURES_ANSWERED_PER_TUNNEL: 50,
  /**
   * of each body, from its beginning: most of what a person reads, and of what can be sent again
   * @limit dashboard: Body of a request or response, size | only the beginning is kept; the request cannot be replayed
   */
  CAPTURE_BODY_MAX_BYTES: 16 * KiB,
  /**
   * heads and bodies of one tunnel’s kept requests; the oldest go first
   * @limit dashboard: All kept requests of one tunnel, size | the oldest request is dropped
   */
  CAPTURE_BYTES_PER_TUNNEL: 4 * MiB,
  /** the same for all tunnels together; the account that keeps the most beyond its `account_share` lets go of its oldest first */
  CAPTURE_BYTES_MAX: 64 * MiB,
  /** a compressed body that grows beyond this when it is looked at is not shown */
  CAPTURE_UNPACKED_MAX_BYTES: 1 * MiB,
  /**
   * a person looks for what went wrong after the tunnel is closed, too
   * @limit dashboard: Requests of a closed tunnel, time for which they are kept | the requests are dropped
   */
  CAPTURE_KEPT_AFTER_END_MS: 3600 * 1000,
  /** ended tunnels whose list of requests is empty instead of unknown; the oldest go first */
  CAPTURE_TUNNELS_REMEMBERED: 20_000,
  /** how often what has outlived its tunnel by its time is dropped */
  CAPTURE_SWEEP_MS: 10_000,
  /**
   * a response that is not complete by then is cut off, and shown as far as it came
   * @limit api: Replay, time until the response is complete | the response is cut off
   */
  REPLAY_TIMEOUT_MS: 30_000,
  /** a longer response is cut off: nobody waits for the end of an endless one */
  REPLAY_RESPONSE_MAX_BYTES: 64 * MiB,
  /** replays of all tunnels under way; each holds a stream and an answer of the REST */
  REPLAYS_AT_ONCE: 64,
  /**
   * the same for one account: a service that never answers holds up its owner alone
   * @limit api: Replays of one account at once | 429 `CAPTURE_REPLAYS_BUSY`
   */
  REPLAYS_AT_ONCE_PER_OWNER: 16,

  /** callers that wait for a request to finish, of all tunnels; each takes one of the connections to the REST */
  REQUEST_WAITS_MAX: 1024,
  /**
   * the same for one account: as many as a model host may have calls under way, and its platform the same
   * @limit api: Calls of one account that wait for a request | 429 `CAPTURE_WAITS_BUSY`
   */
  REQUEST_WAITS_PER_OWNER: 64,
  /** after which one that was too many is told to ask again */
  REQUEST_WAITS_BUSY_RETRY_MS: 5000,

  // --- alerts of groups without a healthy member ---
  /** of one alert, from the look-up of its name to the head of the answer; there is no second try */
  ALERT_TIMEOUT_MS: 5000,
  /** alerts that begin in one turn of the event loop: frames are handled in between */
  ALERT_STARTS_PER_TURN: 8,
  /** a registration waits this long for the name in its alert URL; the alert checks it anyway */
  ALERT_LOOKUP_TIMEOUT_MS: 1000,
  /** what the names of all tunnels of one client may cost it before the next ones are not looked up: well below REGISTER_TIMEOUT_MS */
  ALERT_LOOKUPS_PER_CONNECTION_MS: 5000,

  // --- edge REST ---
  /**
   * no request of the REST needs more
   * @limit api: Request body, size (edge) | 413 `API_BODY_TOO_LARGE`
   */
  API_BODY_MAX_BYTES: 64 * KiB,
  /** a request head that is not complete by then is dropped */
  API_HEAD_TIMEOUT_MS: 15_000,
  /** a whole request that is not complete by then is dropped */
  API_REQUEST_TIMEOUT_MS: 30_000,
  /** connections to REST and metrics at once, however many descriptors there are */
  API_CONNECTIONS_MAX: 2048,
  /** connections that GET /api/connections shows, the oldest ones */
  API_CONNECTIONS_SHOWN: 1000,
  /** flows that GET /api/tunnels/:id/flows shows, the last active ones */
  API_FLOWS_SHOWN: 200,
  /** peers that GET /api/tunnels/:id/peers shows, the first ones; `[p2p] peers_per_tunnel` is 100 unless an operator says more */
  API_PEERS_SHOWN: 1000,
  /** a long list of groups is made and sent in parts of about this size, as fast as they are read */
  API_CHUNK_BYTES: 64 * KiB,

  // --- the platform's host ---
  /** how long the platform of the same machine may take to accept a connection */
  PLATFORM_DIAL_TIMEOUT_MS: 5000,
  /** connections to it at once; requests beyond that are told to come again */
  PLATFORM_STREAMS_MAX: 2000,

  // --- event streams of groups, and their metrics ---
  /** how often a stream of events says that it is alive */
  SSE_KEEP_ALIVE_MS: 30_000,
  /** after which a consumer is told to come back when its stream has ended */
  SSE_RETRY_MS: 2000,
  /** events that wait for one consumer; the next ones are dropped, and it is told how many */
  SSE_QUEUE_MAX: 256,
  /** streams of events at once; each takes one of the connections to the REST */
  SSE_CONSUMERS_MAX: 512,
  /**
   * the same for one account, whichever of its keys asks, and for the operator
   * @limit api: Event streams of one account | 429 `API_STREAMS_BUSY`
   */
  SSE_CONSUMERS_PER_OWNER: 64,
  /** after which one that was too many is told to ask again */
  SSE_BUSY_RETRY_MS: 5000,
  /** how long the metrics of a group outlive it; one that comes back in time goes on counting */
  GROUP_SERIES_KEPT_MS: 300_000,
  /** groups whose metrics outlive them; the oldest go first */
  GROUP_SERIES_KEPT_MAX: 10_000,

  ...POLICY_LIMITS,
  ...NAME_LIMITS,
  ...CERTIFICATE_LIMITS,

  // --- an edge and its platform ---
  /** a call to the platform that is not answered by then has failed */
  PLATFORM_CALL_TIMEOUT_MS: 5000,
  /** after a failed call nobody waits for the platform this long: what the edge knows decides */
  PLATFORM_PAUSE_MS: 1000,
  /** no answer of the platform is longer */
  PLATFORM_ANSWER_MAX_BYTES: 256 * KiB,
  /** how often the edge tells the platform that it lives */
  PLATFORM_HEARTBEAT_MS: 5000,
  /** What the platform of the same stack may take to tell its metrics: whoever scrapes waits for them. */
  PLATFORM_SERIES_MS: 1000,
  /** a stream of changes without a sign of life for so long is dead and asked for anew */
  PLATFORM_CHANGES_SILENT_MS: 25_000,
  /** one line of that stream */
  PLATFORM_CHANGE_MAX_BYTES: 64 * KiB,
  /** the first pause before that stream is asked for again */
  PLATFORM_RETRY_MIN_MS: 200,
  /** the longest one: a key that was revoked meanwhile is heard of soon after the return */
  PLATFORM_RETRY_MAX_MS: 2000,
  /** a stream that lived this long was a good one: the pauses begin anew */
  PLATFORM_RETRY_STABLE_MS: 10_000,
  /** what the last delivery may take when the edge stops; the rest waits on the disk */
  PLATFORM_STOP_MS: 3000,
  /**
   * a key that the platform accepted is not asked for again before this
   * @limit operator: Key that the platform accepted, time until the edge asks again | a revoked key is refused within this time even if the edge missed the change
   */
  KEY_FRESH_MS: 60_000,
  /**
   * how long an accepted key is good while the platform is away
   * @limit operator: Platform away, time for which known keys keep working | `AUTH_BACKEND_AWAY`
   */
  KEY_STALE_MS: 3600 * 1000,
  /** a refused key is not asked for again before this */
  KEY_REFUSED_MS: 5000,
  /** accepted keys that are remembered, one for each session there can be; the oldest go first */
  KNOWN_KEYS_MAX: 20_000,
  /** of these, how many are kept on the disk for a start without the platform; the last ones */
  KEY_COPIES_MAX: 5000,
  /** the copy waits so long for more keys */
  KEY_COPIES_WAIT_MS: 2000,
  /** how often it is written anew, so that it says until when the platform was heard */
  KEY_COPIES_EVERY_MS: 5 * 60_000,
  /** a larger file of them is not read */
  KEY_COPIES_MAX_BYTES: 8 * MiB,
  /** refused keys that are remembered; apart, so that guesses push no good key out */
  REFUSED_KEYS_MAX: 10_000,
  /** questions for keys of clients that come in, in any second: after a restart they come all at once */
  KEY_CHECKS_PER_SECOND: 200,
  /** clients whose keys wait for that; a client waits 10 s for its answer, further ones are told to come again */
  KEY_CHECKS_WAITING_MAX: 1000,
  /** keys asked for at once when the edge has missed changes and asks for all of them again */
  KEY_CHECKS_AT_ONCE: 8,

  // --- the edge's journal of usage ---
  /** what tunnels have carried is on disk after this: the most that a kill of the process takes */
  JOURNAL_WRITE_MS: 100,
  /** the end of a stream is written at once, but not more often than this */
  JOURNAL_STREAM_END_MS: 5,
  /** how often the platform is told of usage; of openings and ends it is told at once */
  JOURNAL_DELIVER_MS: 5000,
  /** records that the platform is told of at once */
  JOURNAL_BATCH_RECORDS: 1000,
  /** the same by their size */
  JOURNAL_BATCH_BYTES: 1 * MiB,
  /** lines behind the last summary; then the usage of one tunnel and day is summed up anew */
  JOURNAL_TAIL_BYTES: 8 * MiB,
  /** lines that wait for a slow disk, usage summed up; with more, no tunnel of an account is opened until the disk has taken them */
  JOURNAL_QUEUE_BYTES: 8 * MiB,
  /**
   * summed records that wait for the platform; with more, no tunnel of an account is opened until it is back
   * @limit operator: Usage records that wait for the platform | no tunnel is opened until the platform is back
   */
  JOURNAL_RECORDS_MAX: 100_000,
  /** the counters of an ended tunnel are watched this long, and until its last connection ends */
  USAGE_AFTER_END_MS: 60_000,

  // --- names ---
  /**
   * enough to tell tunnels apart, and fits a line
   * @limit tunnels: Tunnel name, length | `TUNNEL_NAME_INVALID`
   */
  TUNNEL_NAME_MAX_CHARS: 100,

  // --- flows of udp tunnels ---
  /** new flows of one client that it has not answered for: with more than this they would keep it from those that it has */
  FLOWS_OPENING_MAX: 128,
  /** as many may always be: a client that answers late is not a client that is busy */
  FLOWS_OPENING_MIN: 32,
  /** later than the fastest answer by more than this, the client is busy with new flows, and no further one begins */
  FLOWS_OPENING_LATE_MS: 40,
  /** the fastest answer of this time counts; a path may change */
  FLOWS_OPENING_WINDOW_MS: 10_000,
  /** confirmed flows of an account that are looked at to find the one that has been idle longest, when a flow is taken back */
  FLOWS_LOOKED_AT: 1024,

  // --- peers ---
  /** how long the client of a dismissed peer is told that there is nothing */
  P2P_DISMISSED_MS: 60_000,
  /** dismissed peers that are remembered; the oldest is forgotten first */
  P2P_DISMISSED_MAX: 10_000,

  // --- rate limits of policies ---
} as const;
