// Every bound of a client, by name. docs/limits.md is written from these lines; a test compares the two.

const KiB = 1024;
const MiB = 1024 * KiB;

export const CLIENT_LIMITS = {
  // --- client ---
  /**
   * a local service that does not answer by then is down
   * @limit tunnels: Connection to the local service, time | HTTP visitors get 502 `LOCAL_UNREACHABLE`
   */
  LOCAL_DIAL_TIMEOUT_MS: 10_000,
  /** what the address of a Unix socket has room for; the system cuts off what is longer */
  LOCAL_SOCKET_PATH_MAX_BYTES: 107,
  /** of a socket or a folder, in the name of a tunnel that was given none */
  LOCAL_LABEL_MAX_CHARS: 40,
  /** files: the head of a request, with what the edge has added to one of HTTP/2 */
  FILES_HEAD_MAX_BYTES: 128 * KiB,
  /** files: what is read at once; a visitor that does not read holds about three of these */
  FILES_READ_BYTES: 256 * KiB,
  /**
   * files: entries of a folder that its page shows, each looked at on the disk
   * @limit tunnels: Entries of a folder that `tunnel files` lists | further entries are left out of the page
   */
  FILES_LISTED_MAX: 1000,
  /** the longest first pause, drawn from zero on; later pauses are up to twice as long, or a quarter of the time without a connection if that is longer */
  RECONNECT_MIN_MS: 500,
  /**
   * the longest pause between two attempts
   * @limit tunnels: Reconnection, longest pause between two attempts | the client tries again after this time at the latest
   */
  RECONNECT_MAX_MS: 30_000,
  /** a connection that lasted this long resets the pause */
  RECONNECT_STABLE_AFTER_MS: 5000,
  /**
   * at the first start the client gives up after this (exit code 5), unless --wait
   * @limit tunnels: First connection of `tunnel`, time | `CLIENT_SERVER_UNREACHABLE` and exit code 5, unless `--wait` is given
   */
  FIRST_CONNECT_TIMEOUT_MS: 30_000,
  /** attempts of the first start come at least this often, so that its 30 s hold several */
  FIRST_CONNECT_RETRY_MAX_MS: 5000,
  /** how long the answer to a registration is awaited while the edge answers no other one */
  REGISTER_TIMEOUT_MS: 15_000,
  /** registrations that were sent and are not answered: an edge reads twice as many ahead, so that pings never wait behind them */
  REGISTRATIONS_UNDER_WAY: 256,
  /** the same by their characters; a policy can have 64 Ki of them */
  REGISTRATIONS_UNDER_WAY_CHARS: 128 * KiB,
  /** after a failed handshake: how long the client looks whether the server speaks TLS or not */
  KIND_PROBE_TIMEOUT_MS: 3000,
  /** connect, TLS and upgrade of one carrier together */
  CARRIER_DIAL_TIMEOUT_MS: 10_000,
  /** the edge answers on the control connection, so its tunnels are not without carriers for long */
  CARRIER_RETRY_MAX_MS: 5000,
  /** the head of the answer to a carrier upgrade */
  CARRIER_UPGRADE_HEAD_MAX_BYTES: 8 * KiB,
  /** a proxy: connect, TLS if it speaks it, and its answer, before anything is said to the server */
  PROXY_DIAL_TIMEOUT_MS: 15_000,
  /** a password that a proxy took before and does not take any more is shown to it again, but not often */
  PROXY_AUTH_RETRY_MS: 60_000,
  /** the head of a proxy’s answer to CONNECT */
  PROXY_HEAD_MAX_BYTES: 16 * KiB,
  /** what is repeated of the words of a proxy that refuses */
  PROXY_WORDS_MAX_CHARS: 200,
  /** RequestCarriers is repeated when no tokens have come by then */
  CARRIER_TOKEN_WAIT_MS: 10_000,
  /** a session without any carrier by then is given up and dialled anew */
  FIRST_CARRIER_TIMEOUT_MS: 15_000,
  /** earlier sessions whose streams still finish after a reconnect */
  RETIRED_SESSIONS_MAX: 8,
  /** visitors that were quicker than the answer to the registration */
  PARKED_STREAMS_MAX: 1024,
  /** clients of one configuration file that can each resume after a restart */
  RESUME_SLOTS_MAX: 16,
  /** a slot whose owner cannot be looked up is free after this */
  FOREIGN_SLOT_STALE_AFTER_MS: 180_000,
  /** names and ports chosen by edges that the clients of a user remember, to ask for them again; the longest unused are dropped */
  ASSIGNED_ENDPOINTS_MAX: 200,
  /** changes of that file wait this long for others, and what was read of it counts as long */
  ASSIGNED_WRITE_MS: 200,
  /** how often a client that ends tries to write that file while another client writes it */
  ASSIGNED_LOCK_TRIES: 20,
  /** the pause between two of these tries */
  ASSIGNED_LOCK_PAUSE_MS: 5,
  /** how long a client that ends waits for the edge to take note */
  CLIENT_CLOSE_TIMEOUT_MS: 2000,
  /** how often a client with udp tunnels or peers looks whether its own addresses have changed */
  OWN_ADDRESSES_EVERY_MS: 10_000,
  /** how often the client looks after its connections; silence is judged as of the next look */
  CLIENT_TICK_MS: 1000,
  /** a local service that is down is reported once in this time, not for every visitor */
  LOCAL_DIAL_NOTICE_EVERY_MS: 5000,
  /**
   * udp: flows of one client at once, a socket each
   * @limit tunnels: UDP flows of one client | `CLIENT_FLOW_LIMIT`; new visitors are turned away
   */
  FLOWS_MAX: 10_000,
  /** part of the descriptors of the process that they may take */
  FLOWS_DESCRIPTOR_SHARE: 0.75,
  /** the longest idle time that an edge can have: what the client goes by when its tunnel names none */
  FLOW_IDLE_MAX_SECS: 3600,
  /** the edge ends a silent flow; this much later the client does by itself */
  FLOW_IDLE_GRACE_MS: 30_000,
  /** how often silent flows are looked for */
  FLOW_LOOK_EVERY_MS: 5000,
  /** a flow that is silent for this long is not waited for when the client ends */
  FLOW_DRAIN_SILENCE_MS: 2000,
  /** datagrams of one flow that the kernel has not taken yet; over it they are dropped */
  FLOW_BACKLOG_MAX_BYTES: 256 * KiB,
  /** asked of the system for what a local service sends to one flow; it may give less. 400 ms at 20 Mbit/s, for a client that is busy for a moment */
  FLOW_RECEIVE_BUFFER_BYTES: 1 * MiB,
  /** visitors whose dropped datagrams wait by name to be told to the edge; those of others are told without */
  UNREPORTED_VISITORS_MAX: 1000,
  /** how long the address of a local host is good, and how long a failure to find it counts */
  LOCAL_LOOKUP_VALID_MS: 5000,
  /** p2p: a subscriber that is refused at its first start gives up after this (exit code 4), unless --wait */
  FIRST_JOIN_TIMEOUT_MS: 30_000,
  /** a peer that could not prove the secret is not asked again sooner */
  PROOF_RETRY_MS: 30_000,
  /** how often a publisher tells the edge what passes direct, while something does */
  PEER_REPORT_EVERY_MS: 5000,
  /** a sender of datagrams to a peer is forgotten after so long a silence */
  PEER_FLOW_IDLE_MS: 60_000,
  /** likewise one that asked once and was answered */
  PEER_FLOW_ANSWERED_IDLE_MS: 10_000,
  /** to a sender from elsewhere that has not spoken again: its address may be forged */
  PEER_FLOW_UNCONFIRMED_BYTES: 8 * KiB,
  /** a health check reads no more of an answer than its status line */
  PROBE_STATUS_LINE_MAX_BYTES: 4 * KiB,
  /**
   * requests that the inspector of one client can show; the oldest give way
   * @limit dashboard: Inspector of a client: requests | the oldest request is dropped
   */
  INSPECTOR_REQUESTS_MAX: 200,
  /** what they may hold together, heads and bodies */
  INSPECTOR_REQUESTS_BYTES: 8 * MiB,
  /** the beginning of a body that is kept for a look; a longer request cannot be replayed */
  INSPECTOR_BODY_MAX_BYTES: 16 * KiB,
  /** a replay whose response does not end by then is cut off */
  INSPECTOR_REPLAY_TIMEOUT_MS: 30_000,
  /** what its page sends to have a request edited before it is replayed: a head, a body, and JSON around them */
  INSPECTOR_EDIT_MAX_BYTES: 64 * KiB,
  /** connections to the inspector page at once */
  INSPECTOR_CONNECTIONS_MAX: 64,
  /** events that wait for one open page; a page that reads slower is told to load again */
  INSPECTOR_LAG_MAX_BYTES: 1 * MiB,
  /** passwords of policies whose hashes are kept, so that a reload makes them once */
  POLICY_PASSWORD_LINES_MAX: 1000,
  /** all checks of the doctor together */
  DOCTOR_WITHIN_MS: 20_000,
  /** round trips that the doctor takes, on the control connection and on a carrier */
  DOCTOR_PINGS: 10,
  /** how long it pings one connection at most */
  DOCTOR_PINGS_WITHIN_MS: 3000,
  /** datagrams that the doctor sends to each UDP port of the edge */
  DOCTOR_UDP_PINGS: 5,
  /** the edge answers fifty a second */
  DOCTOR_UDP_PING_EVERY_MS: 100,
  /** from the first of them to the last answer */
  DOCTOR_UDP_WITHIN_MS: 2000,
  /** what the doctor sends and fetches to tell the bandwidth, each way */
  DOCTOR_TRANSFER_BYTES: 8 * MiB,
  /** a slow line is known well before that much has passed */
  DOCTOR_TRANSFER_WITHIN_MS: 3000,
  /** for one look at the name, the connection or the certificate: what takes longer is found by its silence */
  DOCTOR_STEP_WITHIN_MS: 5000,
  /** for a local service, all of which are asked at once */
  DOCTOR_TARGET_WITHIN_MS: 3000,

  // --- the doctor ---
  /** certificates and sessions forgive this much */
  DOCTOR_CLOCK_WARN_MS: 60_000,
  /** beyond it sign-ins and certificates fail for no other reason */
  DOCTOR_CLOCK_FAIL_MS: 5 * 60_000,
  /** renewals happen a month before the end; two weeks before it one has failed */
  DOCTOR_CERTIFICATE_WARN_DAYS: 14,
  /** people notice a quarter of a second */
  DOCTOR_LATENCY_WARN_MS: 250,
  /** a page of a megabyte takes eight seconds then */
  DOCTOR_BANDWIDTH_WARN_MBITS: 1,
} as const;
