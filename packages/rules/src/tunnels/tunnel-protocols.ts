// Tunnel protocols of an edge and their kind of public endpoint. To add a protocol, add a line to the table; the compiler then reports the
// other tables that need an entry.

interface ProtocolTraits {
  /** Kind of public endpoint that tunnels of this protocol have: a port, a name on the shared port, or a p2p name. */
  readonly endpoint:
    | { readonly kind: 'port'; readonly transport: string }
    | { readonly kind: 'name' }
    | { readonly kind: 'peer-name' };
  /** True if several tunnels of this protocol can share a public endpoint as a group. */
  readonly mayGroup: boolean;
  /** Capability that client and edge must have negotiated. Null if every client can open such a tunnel. */
  readonly capability: string | null;
}

/** Tunnel protocols and their traits, in the order used in error messages. */
export const TUNNEL_PROTOCOLS = {
  http: { endpoint: { kind: 'name' }, mayGroup: true, capability: null },
  // The local service speaks TLS, which only concerns the client. Public traffic is the same as for http.
  https: { endpoint: { kind: 'name' }, mayGroup: true, capability: null },
  tcp: { endpoint: { kind: 'port', transport: 'tcp' }, mayGroup: true, capability: null },
  // TLS that the edge does not decrypt: routed by the name in the ClientHello, and relayed like tcp.
  tls: { endpoint: { kind: 'name' }, mayGroup: true, capability: 'tls' },
  udp: { endpoint: { kind: 'port', transport: 'udp' }, mayGroup: false, capability: 'datagram' },
  p2p: { endpoint: { kind: 'peer-name' }, mayGroup: false, capability: 'p2p' },
} as const satisfies Readonly<Record<string, ProtocolTraits>>;

type Table = typeof TUNNEL_PROTOCOLS;

export type TunnelProtocol = keyof Table;

export type GroupProtocol = {
  [P in TunnelProtocol]: Table[P]['mayGroup'] extends true ? P : never;
}[TunnelProtocol];

/** Transport protocol of a tunnel's port. TCP and UDP ports are independent. */
export type Transport = Extract<Table[TunnelProtocol]['endpoint'], { kind: 'port' }>['transport'];

/** Keys in `[limits]` of server.toml with the port range of each transport. */
export const PORT_RANGE_KEYS: Readonly<Record<Transport, string>> = { tcp: 'tcp_port_range', udp: 'udp_port_range' };

export const isTunnelProtocol = (protocol: string): protocol is TunnelProtocol =>
  Object.hasOwn(TUNNEL_PROTOCOLS, protocol);

export const isGroupProtocol = (protocol: string): protocol is GroupProtocol =>
  isTunnelProtocol(protocol) && TUNNEL_PROTOCOLS[protocol].mayGroup;
