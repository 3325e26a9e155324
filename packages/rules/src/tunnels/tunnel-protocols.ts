// The protocols of tunnels that an edge takes, and the public endpoint that each one wants. A new protocol is a line in the table: the
// compiler then names the tables of the edge that want one, too.

interface ProtocolTraits {
  /** A port of its own, a name on the port that all share, or a name that peers ask for. */
  readonly endpoint:
    | { readonly kind: 'port'; readonly transport: string }
    | { readonly kind: 'name' }
    | { readonly kind: 'peer-name' };
  /** Several tunnels may stand at one endpoint. */
  readonly mayGroup: boolean;
  /** What client and edge must have agreed on at the start of their session; null: every client can have such a tunnel. */
  readonly capability: string | null;
}

/** In the order in which a refusal names them. */
export const TUNNEL_PROTOCOLS = {
  http: { endpoint: { kind: 'name' }, mayGroup: true, capability: null },
  // The local service speaks TLS, which is the client's business; to the public it is http.
  https: { endpoint: { kind: 'name' }, mayGroup: true, capability: null },
  tcp: { endpoint: { kind: 'port', transport: 'tcp' }, mayGroup: true, capability: null },
  // TLS that the edge cannot read: found by the name in its ClientHello, carried as tcp's bytes are.
  tls: { endpoint: { kind: 'name' }, mayGroup: true, capability: 'tls' },
  udp: { endpoint: { kind: 'port', transport: 'udp' }, mayGroup: false, capability: 'datagram' },
  p2p: { endpoint: { kind: 'peer-name' }, mayGroup: false, capability: 'p2p' },
} as const satisfies Readonly<Record<string, ProtocolTraits>>;

type Table = typeof TUNNEL_PROTOCOLS;

export type TunnelProtocol = keyof Table;

export type GroupProtocol = {
  [P in TunnelProtocol]: Table[P]['mayGroup'] extends true ? P : never;
}[TunnelProtocol];

/** What a port is a port of: each has its own numbers. */
export type Transport = Extract<Table[TunnelProtocol]['endpoint'], { kind: 'port' }>['transport'];

/** The key of `[limits]` that says which ports there are. */
export const PORT_RANGE_KEYS: Readonly<Record<Transport, string>> = { tcp: 'tcp_port_range', udp: 'udp_port_range' };

export const isTunnelProtocol = (protocol: string): protocol is TunnelProtocol =>
  Object.hasOwn(TUNNEL_PROTOCOLS, protocol);

export const isGroupProtocol = (protocol: string): protocol is GroupProtocol =>
  isTunnelProtocol(protocol) && TUNNEL_PROTOCOLS[protocol].mayGroup;
