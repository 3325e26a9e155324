// The protocols of tunnels that an edge takes, and the public endpoint that each one wants. A new protocol is a line in the table: the
// compiler then names the tables of the edge that want one, too.

interface ProtocolTraits {
  /** A port of its own, or a name on the port that all share. */
  readonly endpoint: { readonly kind: 'port'; readonly transport: string } | { readonly kind: 'name' };
  /** Several tunnels may stand at one endpoint. */
  readonly mayGroup: boolean;
}

/** In the order in which a refusal names them. */
export const TUNNEL_PROTOCOLS = {
  http: { endpoint: { kind: 'name' }, mayGroup: true },
  // The local service speaks TLS, which is the client's business; to the public it is http.
  https: { endpoint: { kind: 'name' }, mayGroup: true },
  tcp: { endpoint: { kind: 'port', transport: 'tcp' }, mayGroup: true },
} as const satisfies Readonly<Record<string, ProtocolTraits>>;

type Table = typeof TUNNEL_PROTOCOLS;

export type TunnelProtocol = keyof Table;

export type GroupProtocol = {
  [P in TunnelProtocol]: Table[P]['mayGroup'] extends true ? P : never;
}[TunnelProtocol];

/** What a port is a port of: each has its own numbers. */
export type Transport = Extract<Table[TunnelProtocol]['endpoint'], { kind: 'port' }>['transport'];

export const isTunnelProtocol = (protocol: string): protocol is TunnelProtocol =>
  Object.hasOwn(TUNNEL_PROTOCOLS, protocol);

export const isGroupProtocol = (protocol: string): protocol is GroupProtocol =>
  isTunnelProtocol(protocol) && TUNNEL_PROTOCOLS[protocol].mayGroup;
