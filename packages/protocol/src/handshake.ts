// Constants for both kinds of connections to the control port, and the negotiation between different versions.

export const PROTOCOL_VERSION = 1;
export const SUPPORTED_VERSIONS: readonly number[] = [PROTOCOL_VERSION];

/** Extensions of version 1 by name: frame types, control messages, and fields that must not be ignored. */
export const CAPABILITY = {
  /** Capability for UDP tunnels: datagram streams, DATAGRAM and SEEN frames, and DatagramPath. */
  DATAGRAM: 'datagram',
  /** Capability for p2p tunnels: peers that join a publisher with ConnectPeer and related messages. */
  P2P: 'p2p',
  /** Capability for DatagramDrops messages, so that the edge can count datagrams dropped by clients. */
  DATAGRAM_DROPS: 'datagram-drops',
  /** Capability for the frame OPEN_COMPACT, sent instead of OPEN. */
  COMPACT_OPEN: 'compact-open',
  /** Policies of tunnels: who can visit, and how requests are handled. An edge without support would publish the service to everyone. */
  POLICY: 'policy',
  /** Tunnels with protocol `tls`, and `domain` in RegisterTunnel. An edge without support would reject the frame or assign another name. */
  TLS: 'tls',
  /** Capability for EdgeAnswered and EdgeAnsweredMore, which report requests answered by the edge itself. */
  EDGE_ANSWERS: 'edge-answers',
  /** Capability for packets with several datagrams on the UDP path between client and edge. */
  DATAGRAM_BATCH: 'datagram-batch',
} as const;

/**
 * Capabilities of this build. A client offers its list in Auth, and the edge answers with the common subset. Everything else works as in
 * version 1.
 */
export const CAPABILITIES: readonly string[] = Object.values(CAPABILITY);

/** Returns the common values in our order. Unknown names are ignored, because newer versions may send them. */
export const agreeOn = <T>(offered: readonly T[], known: readonly T[]): T[] =>
  known.filter((name) => offered.includes(name));

export const CONTROL_PATH = '/_control';
export const CARRIER_PATH = '/_carrier';
/** URL path of the edge for GET and POST of test data, to measure throughput. */
export const SPEED_PATH = '/_speed';

/** Protocol name in the HTTP upgrade of a carrier. */
export const CARRIER_PROTOCOL = 'tunnel-carrier/1';

/** ALPN protocol that identifies clients on a port shared with visitors. */
export const ALPN_TUNNEL = 'tunnel/1';

/** ALPN protocols offered in TLS by both sides. The second is for WebSocket libraries that cannot set ALPN. */
export const ALPN_NAMES: readonly string[] = [ALPN_TUNNEL, 'http/1.1'];

/** WebSocket close codes of a control connection. */
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
