// Why each limit has its value. docs/limits.md is rendered from this and from LIMITS (a test keeps them equal).
import type { LimitName } from './limits.ts';

export interface LimitNote {
  readonly unit: 'bytes' | 'chars' | 'ms' | 'count' | 'share';
  readonly why: string;
}

const bytes = (why: string): LimitNote => ({ unit: 'bytes', why });
const chars = (why: string): LimitNote => ({ unit: 'chars', why });
const ms = (why: string): LimitNote => ({ unit: 'ms', why });
const count = (why: string): LimitNote => ({ unit: 'count', why });
const share = (why: string): LimitNote => ({ unit: 'share', why });

export const LIMIT_NOTES: Readonly<Record<LimitName, LimitNote>> = {
  CONTROL_FRAME_MAX_BYTES: bytes(
    'the largest honest control message is a few KiB; a stranger cannot make us hold more',
  ),
  CONTROL_TEXT_MAX_CHARS: chars('a message or reason for people; a longer one is cut by its sender'),
  CONTROL_TOKEN_MAX_CHARS: chars(
    'a key is well below this; a client takes anything longer for a wrong file and does not send it',
  ),
  CONTROL_SEND_QUEUE_MAX_BYTES: bytes(
    'a peer that does not read its control messages is closed instead of filling memory',
  ),
  CONTROL_AUTH_TIMEOUT_MS: ms(
    'a connection that does not say who it is gets no longer than this; the client waits as long for the answer',
  ),
  CONTROL_PING_INTERVAL_MS: ms('two pings fit into the time after which a silent peer counts as dead'),
  CONTROL_DEAD_AFTER_MS: ms('a link that went silent without closing is noticed within this time, on both sides'),
  CONTROL_HANDSHAKE_TIMEOUT_MS: ms('connect, TLS and WebSocket upgrade together, as seen by the client'),
  CONTROL_CLOSE_TIMEOUT_MS: ms('how long the answer to a close frame is awaited before the socket is destroyed'),
  CONTROL_HEAD_MAX_BYTES: bytes('request heads on the control port: an upgrade needs a few hundred bytes'),
  CONTROL_HANDSHAKES_MAX: count(
    'connections to the control port that have not asked for an upgrade yet; above this the one that waits longest is closed',
  ),
  CONTROL_UNAUTHENTICATED_MAX: count(
    'upgraded connections that have not said who they are, together: strangers cannot use up the sockets',
  ),
  AUTH_FAILURE_WINDOW_MS: ms('the minute that `[limits] auth_failures_per_minute` speaks of'),
  AUTH_FAILURE_ADDRESSES_MAX: count('addresses whose refused keys are remembered; the oldest is forgotten first'),
  RESUME_WINDOW_MS: ms('the name and the port of a lost session are held for it this long'),
  SESSIONS_MAX: count('sessions of one edge, those that wait for their client included'),
  SESSION_TICK_MS: ms('how often the edge looks for what has become due: pings, dead carriers, held ports'),
  PORT_TAKEN_RETRY_MS: ms('a port of the range that another program holds is not tried again before this'),

  FRAME_HEADER_BYTES: bytes('type, length and stream id'),
  FRAME_DATA_MAX_BYTES: bytes('one read buffer; larger frames would keep other streams of the carrier waiting'),
  FRAME_CONTROL_MAX_BYTES: bytes('frames other than DATA are gathered before they are read, so they must be small'),
  RESET_REASON_MAX_BYTES: bytes('a line for people; a longer text is cut between two characters'),
  OPEN_TUNNEL_ID_MAX_CHARS: chars('as on the control connection; OPEN fits its frame however it is escaped'),
  OPEN_VISITOR_MAX_CHARS: chars('an address and a port with room to spare; OPEN fits its frame however it is escaped'),

  STREAMS_PER_CARRIER: count('open at once; bounds the tables of both sides'),
  STREAM_WINDOW_FLOOR_BYTES: bytes('the first credit while memory is short: a stream always moves'),
  STREAM_WINDOW_INITIAL_BYTES: bytes('the first credit: enough for most answers in one round trip'),
  STREAM_WINDOW_SHORT_PATH_BYTES: bytes(
    'the largest window while a round trip takes under 5 ms; more would only stand in front of small frames',
  ),
  STREAM_WINDOW_MAX_BYTES: bytes('1 Gbit/s over a path of 130 ms; more credit than this at once is a violation'),
  STREAM_OPEN_TIMEOUT_MS: ms(
    'the local dial and the way there and back; longer than LOCAL_DIAL_TIMEOUT_MS, so that the client says why first',
  ),
  OPENS_WAITING_MAX: count('visitors of one session that wait for a carrier at once'),
  CARRIER_WAIT_MS: ms('how long a visitor waits for a carrier of a client that has just come back'),
  SESSION_BUDGET_BYTES: bytes('bytes that the streams of one session may have us hold; over it windows stop growing'),
  PROCESS_BUDGET_MEMORY_SHARE: share('part of the machine’s memory that all sessions together may have us hold'),

  CARRIERS_PER_SESSION_DEFAULT: count(
    'one lost packet stalls one carrier only; more of them cost handshakes and memory',
  ),
  CARRIERS_PER_SESSION_MAX: count('those that finish their last streams included'),
  CARRIER_TOKENS_OUTSTANDING_MAX: count('unused tokens of one session; over it the oldest stop being valid'),
  CARRIER_TOKEN_LIFE_MS: ms('a token is dialled with at once; an old one is somebody else’s'),
  CARRIER_PING_INTERVAL_MS: ms('also measures the round trip by which windows grow'),
  CARRIER_DEAD_AFTER_MS: ms('as on the control connection'),
  CARRIER_LINGER_MS: ms('a carrier that we closed waits this long for the end of the peer'),
  CARRIER_BATCH_BYTES: bytes('small frames of one turn of the event loop leave in one write'),
  CARRIER_SEND_QUEUE_BYTES: bytes('from here on streams wait before they send more DATA'),
  CARRIER_SEND_QUEUE_MAX_BYTES: bytes('small frames of a peer that does not read; over it the carrier is closed'),
  CARRIER_PINNED_BUFFERS_MAX: count('read buffers that slow sinks may keep; over it bytes are copied'),
  CARRIER_ROTATE_AFTER_BYTES: bytes(
    'a TLS key is not used for more (RFC 8446, section 5.5); a fresh carrier takes its place',
  ),
  CARRIER_ROTATE_AFTER_MS: ms('the same by time'),

  SOCKET_SCRATCH_BYTES: bytes('the shared buffer that idle and slow sockets are read into'),
  SOCKET_BULK_BUFFER_BYTES: bytes('the own buffer of a socket that moves much'),
  SOCKET_BULK_BUFFERS_MAX: count('own buffers at once; further sockets share'),
  READ_TURN_BYTES: bytes('read of one busy socket before the others have their turn'),

  VISITOR_BACKLOG: count('connections the system accepts on our behalf while we are busy'),
  VISITOR_HOLD_BYTES: bytes('bytes of a visitor that wait until the local connection is open'),
  VISITOR_KEEPALIVE_MS: ms('TCP keep-alive towards visitors: one that vanished is noticed some minutes later'),
  TCP_LAST_WORDS_MS: ms(
    'how long a visitor of a tcp tunnel whom nobody serves may take to begin an HTTP request and get an answer; else it is reset',
  ),
  REFUSAL_LOG_INTERVAL_MS: ms('refused visitors are counted and logged once in this time, not one by one'),

  MEMBER_TRIES_MAX: count(
    'members of a group that one visitor may be tried with; in a large pool that is down, a flood of visitors must not become a larger one of dials',
  ),
  MEMBER_TRIES_MS: ms(
    'from the first member that did not take a visitor: later no further one is begun, as each may take the time of a dial',
  ),

  HTTP_KEEP_ALIVE_MS: ms('how long a visitor may take to the next request on the same connection'),
  HTTP_LINGER_MS: ms('after our last word the visitor has this long to read it and to close'),
  HTTP_LINGER_MAX_MS: ms('the same for one that still sends its body, and will read when that is out'),
  HTTP_IDLE_STREAMS_PER_TUNNEL: count('open connections to one local service that wait for the next request'),
  HTTP_IDLE_STREAM_MS: ms('how long such a connection waits; most services hang up after 5 s'),
  HTTP_IDLE_STREAM_UNSAFE_MS: ms(
    'a request that cannot be sent twice takes only a connection that was in use this recently',
  ),

  TLS_HANDSHAKE_TIMEOUT_MS: ms('a connection to the https port that is not through its handshake by then is closed'),
  TLS_HANDSHAKES_MAX: count('handshakes under way at once; further connections are closed at once'),
  TLS_FILES_LOOK_MS: ms('how often the edge looks whether its certificate has been renewed'),
  HTTP2_STREAMS_PER_CONNECTION: count('requests of one visitor at once; browsers are content with 100'),
  HTTP2_STREAM_WINDOW_BYTES: bytes('of one request body, what may be on its way while the service does not read'),
  HTTP2_CONNECTION_WINDOW_BYTES: bytes('of all request bodies of a connection, what may be on its way'),
  HTTP2_HEAD_MAX_BYTES: bytes(
    'a head above this resets its stream; it leaves room to answer 431 to one that is too large for HTTP/1.1',
  ),
  HTTP2_FIELDS_MAX: count('header fields; above this the stream is reset, as with the size'),
  HTTP2_SESSION_MEMORY_BYTES: bytes('what node may hold for one connection; over it new streams are refused'),
  HTTP2_RESETS_MAX: count(
    'requests that a visitor takes back before they are answered; over it the connection is closed (rapid reset)',
  ),
  HTTP2_RESETS_WINDOW_MS: ms('the time in which they are counted: a page left behind cancels some hundred at once'),
  HTTP2_SIGNALS_PER_SECOND: count('pings and settings of one connection; gRPC measures its path with many'),
  HTTP2_QUIET_MS: ms('without a byte of a visitor, after this it is looked whether its connection still works'),

  H2C_SESSIONS_PER_TUNNEL: count('connections to one local service that speaks HTTP/2; further calls share them'),
  H2C_STREAMS_PER_SESSION: count('calls on one such connection before another one is opened'),
  H2C_SESSION_IDLE_MS: ms('how long such a connection waits for the next call'),
  H2C_STREAM_BUFFER_BYTES: bytes('bytes of such a connection that wait on their way to and from the stream'),

  LOCAL_DIAL_TIMEOUT_MS: ms('a local service that does not answer by then is down'),
  RECONNECT_MIN_MS: ms('the first pause; it doubles from here, with jitter'),
  RECONNECT_MAX_MS: ms('the longest pause between two attempts'),
  RECONNECT_STABLE_AFTER_MS: ms('a connection that lasted this long resets the pause'),
  FIRST_CONNECT_TIMEOUT_MS: ms('at the first start the client gives up after this (exit code 5), unless --wait'),
  FIRST_CONNECT_RETRY_MAX_MS: ms('attempts of the first start come at least this often, so that its 30 s hold several'),
  REGISTER_TIMEOUT_MS: ms('how long the answer to a registration is awaited'),
  KIND_PROBE_TIMEOUT_MS: ms('after a failed handshake: how long the client looks whether the server speaks TLS or not'),
  CARRIER_RETRY_MAX_MS: ms(
    'the edge answers on the control connection, so its tunnels are not without carriers for long',
  ),
  CARRIER_DIAL_TIMEOUT_MS: ms('connect, TLS and upgrade of one carrier together'),
  CARRIER_UPGRADE_HEAD_MAX_BYTES: bytes('the head of the answer to a carrier upgrade'),
  CARRIER_TOKEN_WAIT_MS: ms('RequestCarriers is repeated when no tokens have come by then'),
  FIRST_CARRIER_TIMEOUT_MS: ms('a session without any carrier by then is given up and dialled anew'),
  RETIRED_SESSIONS_MAX: count('earlier sessions whose streams still finish after a reconnect'),
  PARKED_STREAMS_MAX: count('visitors that were quicker than the answer to the registration'),
  RESUME_SLOTS_MAX: count('clients of one configuration file that can each resume after a restart'),
  FOREIGN_SLOT_STALE_AFTER_MS: ms('a slot whose owner cannot be looked up is free after this'),
  CLIENT_CLOSE_TIMEOUT_MS: ms('how long a client that ends waits for the edge to take note'),
  CLIENT_TICK_MS: ms('how often the client looks after its connections; silence is judged as of the next look'),
  LOCAL_DIAL_NOTICE_EVERY_MS: ms('a local service that is down is reported once in this time, not for every visitor'),
  PROBE_STATUS_LINE_MAX_BYTES: bytes('a health check reads no more of an answer than its status line'),
  INSPECTOR_REQUESTS_MAX: count('requests that the inspector of one client can show; the oldest give way'),
  INSPECTOR_REQUESTS_BYTES: bytes('what they may hold together, heads and bodies'),
  INSPECTOR_BODY_MAX_BYTES: bytes(
    'the beginning of a body that is kept for a look; a longer request cannot be replayed',
  ),
  INSPECTOR_REPLAY_TIMEOUT_MS: ms('a replay whose response does not end by then is cut off'),
  INSPECTOR_CONNECTIONS_MAX: count('connections to the inspector page at once'),
  INSPECTOR_LAG_MAX_BYTES: bytes('events that wait for one open page; a page that reads slower is told to load again'),

  CAPTURES_PER_TUNNEL: count('the last requests of a tunnel that are kept for a look and a replay'),
  CAPTURE_BODY_MAX_BYTES: bytes(
    'of each body, from its beginning: most of what a person reads, and of what can be sent again',
  ),
  CAPTURE_BYTES_PER_TUNNEL: bytes('heads and bodies of one tunnel’s kept requests; the oldest go first'),
  CAPTURE_BYTES_MAX: bytes('the same for all tunnels together; whoever keeps more than an even share gives way first'),
  CAPTURE_UNPACKED_MAX_BYTES: bytes('a compressed body that grows beyond this when it is looked at is not shown'),
  CAPTURE_KEPT_AFTER_END_MS: ms('a person looks for what went wrong after the tunnel is closed, too'),
  CAPTURE_TUNNELS_REMEMBERED: count(
    'ended tunnels whose list of requests is empty instead of unknown; the oldest go first',
  ),
  CAPTURE_SWEEP_MS: ms('how often what has outlived its tunnel by its time is dropped'),
  REPLAY_TIMEOUT_MS: ms('a response that is not complete by then is cut off, and shown as far as it came'),
  REPLAY_RESPONSE_MAX_BYTES: bytes('a longer response is cut off: nobody waits for the end of an endless one'),
  REPLAYS_AT_ONCE: count('replays of all tunnels under way; each holds a stream and an answer of the REST'),

  ALERT_TIMEOUT_MS: ms('of one alert, from the look-up of its name to the head of the answer; there is no second try'),
  ALERTS_AT_ONCE: count('alerts to tenants under way; what is over it is dropped and counted'),
  ALERTS_AT_ONCE_PER_HOST: count('of these to one host and port: a receiver that hangs costs the others nothing'),
  ALERTS_AT_ONCE_OPERATOR: count('alerts to the operator under way: slots that no tenant can use up'),
  ALERT_STARTS_PER_TURN: count('alerts that begin in one turn of the event loop: frames are handled in between'),
  ALERT_URL_MAX_CHARS: chars('the longest alert URL of a tenant, as on the control connection'),
  ALERT_LOOKUP_TIMEOUT_MS: ms(
    'a registration waits this long for the name in its alert URL; the alert checks it anyway',
  ),
  ALERT_LOOKUPS_AT_ONCE: count('registrations that wait for such a name; further ones are not warned'),
  ALERT_LOOKUPS_PER_CONNECTION_MS: ms(
    'what the names of all tunnels of one client may cost it before the next ones are not looked up: well below REGISTER_TIMEOUT_MS',
  ),
  ALERT_DNS_TRY_MS: ms('the first of two questions to a name server; the second one waits twice as long'),

  API_BODY_MAX_BYTES: bytes('no request of the REST needs more'),
  API_HEAD_TIMEOUT_MS: ms('a request head that is not complete by then is dropped'),
  API_REQUEST_TIMEOUT_MS: ms('a whole request that is not complete by then is dropped'),
  API_CONNECTIONS_MAX: count('connections to the REST at once'),
  API_CHUNK_BYTES: bytes(
    'a long list of groups is made and sent in parts of about this size, as fast as they are read',
  ),

  SSE_KEEP_ALIVE_MS: ms('how often a stream of events says that it is alive'),
  SSE_RETRY_MS: ms('after which a consumer is told to come back when its stream has ended'),
  SSE_QUEUE_MAX: count('events that wait for one consumer; the next ones are dropped, and it is told how many'),
  SSE_CONSUMERS_MAX: count('streams of events at once; each takes one of the connections to the REST'),
  SSE_CONSUMERS_PER_OWNER: count('the same for one account, whichever of its keys asks, and for the operator'),
  SSE_BUSY_RETRY_MS: ms('after which one that was too many is told to ask again'),
  GROUP_SERIES_KEPT_MS: ms('how long the metrics of a group outlive it; one that comes back in time goes on counting'),
  GROUP_SERIES_KEPT_MAX: count('groups whose metrics outlive them; the oldest go first'),

  PLATFORM_CALL_TIMEOUT_MS: ms('a call to the platform that is not answered by then has failed'),
  PLATFORM_PAUSE_MS: ms('after a failed call nobody waits for the platform this long: what the edge knows decides'),
  PLATFORM_ANSWER_MAX_BYTES: bytes('no answer of the platform is longer'),
  PLATFORM_HEARTBEAT_MS: ms('how often the edge tells the platform that it lives'),
  PLATFORM_CHANGES_SILENT_MS: ms('a stream of changes without a sign of life for so long is dead and asked for anew'),
  PLATFORM_CHANGE_MAX_BYTES: bytes('one line of that stream'),
  PLATFORM_RETRY_MIN_MS: ms('the first pause before that stream is asked for again'),
  PLATFORM_RETRY_MAX_MS: ms('the longest one: a key that was revoked meanwhile is heard of soon after the return'),
  PLATFORM_RETRY_STABLE_MS: ms('a stream that lived this long was a good one: the pauses begin anew'),
  PLATFORM_STOP_MS: ms('what the last delivery may take when the edge stops; the rest waits on the disk'),
  KEY_FRESH_MS: ms('a key that the platform accepted is not asked for again before this'),
  KEY_STALE_MS: ms('how long an accepted key is good while the platform is away'),
  KEY_REFUSED_MS: ms('a refused key is not asked for again before this'),
  KNOWN_KEYS_MAX: count('accepted keys that are remembered, one for each session there can be; the oldest go first'),
  REFUSED_KEYS_MAX: count('refused keys that are remembered; apart, so that guesses push no good key out'),
  KEY_CHECKS_AT_ONCE: count('keys asked for at once when the edge has missed changes and asks for all of them again'),

  JOURNAL_WRITE_MS: ms('what tunnels have carried is on disk after this: the most that a kill of the process takes'),
  JOURNAL_STREAM_END_MS: ms('the end of a stream is written at once, but not more often than this'),
  JOURNAL_DELIVER_MS: ms('how often the platform is told of usage; of openings and ends it is told at once'),
  JOURNAL_BATCH_RECORDS: count('records that the platform is told of at once'),
  JOURNAL_BATCH_BYTES: bytes('the same by their size'),
  JOURNAL_TAIL_BYTES: bytes('lines behind the last summary; then the usage of one tunnel and day is summed up anew'),
  JOURNAL_RECORDS_MAX: count(
    'summed records that wait for the platform; with more, no tunnel of an account is opened until it is back',
  ),
  USAGE_AFTER_END_MS: ms('the counters of an ended tunnel are watched this long, and until its last connection ends'),
};
