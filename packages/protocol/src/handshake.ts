// How the two kinds of connection to the control port begin and end, and what two sides of different age agree on.

export const PROTOCOL_VERSION = 1;
export const SUPPORTED_VERSIONS: readonly number[] = [PROTOCOL_VERSION];

/** What there is beyond version 1, by name: frame types, control messages, fields that must not be ignored. */
export const CAPABILITY = {
  /** Streams in datagram mode, DATAGRAM and SEEN, DatagramPath: udp tunnels. */
  DATAGRAM: 'datagram',
  /** Peers that join a publisher: ConnectPeer and what follows it. */
  P2P: 'p2p',
  /** DatagramDrops: what a client could not pass on is counted where people look. */
  DATAGRAM_DROPS: 'datagram-drops',
  /** OPEN_COMPACT in the place of OPEN. */
  COMPACT_OPEN: 'compact-open',
  /** Policies of tunnels: who may visit, and what happens to a request. An edge without it would publish the service to everyone. */
  POLICY: 'policy',
  /** Tunnels of protocol `tls`, and `domain` in RegisterTunnel. An edge without it would refuse the frame, or give another name. */
  TLS: 'tls',
  /** EdgeAnswered and EdgeAnsweredMore: requests that the edge answered itself. */
  EDGE_ANSWERS: 'edge-answers',
} as const;

/** What this build can do of it. A client offers its list in Auth, the edge answers with what both know; all else stays as version 1 has it. */
export const CAPABILITIES: readonly string[] = Object.values(CAPABILITY);

/** What both know, in our own order; names that are not known here are the other side's future. */
export const agreeOn = <T>(offered: readonly T[], known: readonly T[]): T[] =>
  known.filter((name) => offered.includes(name));

export const CONTROL_PATH = '/_control';
export const CARRIER_PATH = '/_carrier';
/** GET and POST: bytes to measure the path by. */
export const SPEED_PATH = '/_speed';

/** The name of the carrier's protocol in its HTTP upgrade. */
export const CARRIER_PROTOCOL = 'tunnel-carrier/1';

/** By it a client is known on a port that visitors use, too. */
export const ALPN_TUNNEL = 'tunnel/1';

/** Offered in TLS by both sides; the second name is for WebSocket libraries that offer nothing of their own. */
export const ALPN_NAMES: readonly string[] = [ALPN_TUNNEL, 'http/1.1'];

/** Why a control connection was closed. */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  badFrame: 4400,
  authRefused: 4401,
  fatal: 4403,
  dead: 4408,
  replaced: 4409,
  slow: 4429,
} as const;
