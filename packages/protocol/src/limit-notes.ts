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
  CONTROL_UNAUTHENTICATED_MAX: count(
    'connections that have not said who they are, together: strangers cannot use up the sockets',
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
  REFUSAL_LOG_INTERVAL_MS: ms('refused visitors are counted and logged once in this time, not one by one'),

  LOCAL_DIAL_TIMEOUT_MS: ms('a local service that does not answer by then is down'),
  RECONNECT_MIN_MS: ms('the first pause; it doubles from here, with jitter'),
  RECONNECT_MAX_MS: ms('the longest pause between two attempts'),
  RECONNECT_STABLE_AFTER_MS: ms('a connection that lasted this long resets the pause'),
  FIRST_CONNECT_TIMEOUT_MS: ms('at the first start the client gives up after this (exit code 5), unless --wait'),
  FIRST_CONNECT_RETRY_MAX_MS: ms('attempts of the first start come at least this often, so that its 30 s hold several'),
  REGISTER_TIMEOUT_MS: ms('how long the answer to a registration is awaited'),
  KIND_PROBE_TIMEOUT_MS: ms('after a failed handshake: how long the client looks whether the server speaks TLS or not'),
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

  API_BODY_MAX_BYTES: bytes('no request of the REST needs more'),
  API_HEAD_TIMEOUT_MS: ms('a request head that is not complete by then is dropped'),
  API_REQUEST_TIMEOUT_MS: ms('a whole request that is not complete by then is dropped'),
  API_CONNECTIONS_MAX: count('connections to the REST at once'),
};
