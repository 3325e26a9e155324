// Tunnel protocols as seen by the public: public URL, HTTP settings of a registration, and the listeners of ports. A new protocol needs a
// folder next to this file and an entry in each table.

import { type ServerConfig } from '@tunnel/config/server';
import type { ConnectionGate } from '@tunnel/http-shell';
import { hostOfAuthority } from '@tunnel/http1';
import type { ReportInternalError } from '@tunnel/mux';
import type { MessageOf } from '@tunnel/protocol';
import { FlowAddresses } from '@tunnel/rules/flows';
import { type LeasedEndpoint, type Transport, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { type Clock, type Logger, readOncePerTurn } from '@tunnel/runtime';
import type { PolicyGate } from '../policy/policy-gate.ts';
import type { Balancer } from '../routing/balancer.ts';
import type { PortListeners, PortRange } from '../routing/endpoints.ts';
import type { Registry } from '../routing/registry.ts';
import type { HttpSettings } from '../upstream/upstream-request.ts';
import { HttpErrorFallback } from './http/http-error-fallback.ts';
import { httpUrl, type PublicHttp } from './http/http-listeners.ts';
import { Relay } from './tcp/relay.ts';
import type { RelayTotals } from './tcp/relay-totals.ts';
import { TcpListeners } from './tcp/tcp-listeners.ts';
import { FlowAccounts } from './udp/flow-accounts.rules.ts';
import { UdpListeners } from './udp/udp-listeners.ts';
import { UdpTotals } from './udp/udp-totals.ts';

/**
 * Maximum flows of all udp tunnels together, about 3 KB each. At the limit, the account with the most flows above its `account_share` loses
 * a flow (reason `share`).
 */
const UDP_FLOWS_MAX = 200_000;
/**
 * Maximum remembered denied flows of all udp tunnels, about 600 bytes each. Beyond the limit, each datagram of a denied flow is checked
 * against the policy again.
 */
const UDP_DENIED_MAX = 50_000;

type Registration = MessageOf<'RegisterTunnel'>;

/** Public address of an edge. */
export interface PublicAddress {
  readonly domain: string;
  /** Called when a tunnel is registered, because certificates and an automatically chosen port (0 in the config) are known only then. */
  readonly publicHttp: (host: string) => PublicHttp;
  /** Returns the public https port, or null if the edge has none. */
  readonly httpsPort: () => number | null;
}

/** Endpoint of a tunnel, and its label for displays. */
export interface ReachedAt {
  readonly endpoint: LeasedEndpoint;
  readonly label: string;
}

export interface TunnelKind {
  /** Returns the public URL or public address of a tunnel. */
  publicUrl(at: ReachedAt, edge: PublicAddress): string;
  /** Returns the shared port that visitors of a tunnel must know, or null. */
  sharedPort(edge: PublicAddress): number | null;
  /** Returns the HTTP settings of a tunnel, or null for tunnels that relay raw bytes. */
  httpSettings(request: Registration): HttpSettings | null;
}

const tcpKind: TunnelKind = {
  publicUrl: ({ label }, { domain }) => `tcp://${domain}:${label}`,
  sharedPort: () => null,
  httpSettings: () => null,
};

const tlsKind: TunnelKind = {
  ...tcpKind,
  publicUrl: ({ label }, { httpsPort }) => `tls://${label}:${httpsPort() ?? ''}`,
  sharedPort: ({ httpsPort }) => httpsPort(),
};

const httpKind: TunnelKind = {
  ...tcpKind,
  publicUrl: ({ endpoint, label }, { domain, publicHttp }) => {
    const host = endpoint.kind === 'domain' ? label : `${label}.${domain}`;
    return httpUrl(publicHttp(host), host);
  },
  httpSettings: (request) => ({
    hostHeader: hostHeaderOf(request),
    localProtocol: request.local_protocol,
    capture: request.capture,
  }),
};

const udpKind: TunnelKind = { ...tcpKind, publicUrl: ({ label }, { domain }) => `udp://${domain}:${label}` };

const p2pKind: TunnelKind = { ...tcpKind, publicUrl: ({ label }) => `p2p://${label}` };

const KINDS: Readonly<Record<TunnelProtocol, TunnelKind>> = {
  http: httpKind,
  https: httpKind,
  tcp: tcpKind,
  tls: tlsKind,
  udp: udpKind,
  p2p: p2pKind,
};

export const kindOf = (protocol: TunnelProtocol): TunnelKind => KINDS[protocol];

const hostHeaderOf = ({ host_header, local_addr }: Registration): string | null => {
  if (host_header === 'keep') return null;
  if (host_header !== 'rewrite') return host_header;
  // The local address is free text, so it becomes a Host header only if valid.
  return hostOfAuthority(local_addr) === null ? null : local_addr;
};

// ---- tunnels with a dedicated port ----

/** Totals of visitors at public ports since the start. */
export interface PortTotals extends Pick<RelayTotals, 'requests' | 'bytesToClient' | 'bytesToVisitor'> {
  readonly refused: ReadonlyMap<string, number>;
}

/** Public ports of a transport (tcp or udp), and their visitors. */
export interface PortIngress extends PortListeners {
  /** Open connections at public ports, including connections of closed ports. */
  readonly connections: number;
  readonly totals: PortTotals;
  /** Closes all public ports of the transport. Open connections may finish. */
  closeAll(): Promise<void>;
  whenIdle(): Promise<void>;
  /** Resets the remaining connections at the ports. */
  resetConnections(): void;
}

export interface PortIngressParts {
  readonly host: string;
  readonly tunnels: Pick<Registry, 'at'>;
  readonly balancer: Balancer;
  /** Balancer that counts only UDP flows, to choose group members. */
  readonly flowBalancer: Balancer;
  /** Checks visitors against policies. Undefined on an edge without policies. */
  readonly policies?: PolicyGate | undefined;
  readonly config: Pick<ServerConfig, 'udp' | 'limits'>;
  /** Maximum number of UDP flows. Overrides UDP_FLOWS_MAX. */
  readonly udpFlowsMax?: number | undefined;
  /** Returns the UDP ports used between client and edge. */
  readonly pathPorts: () => readonly number[];
  readonly gate: ConnectionGate;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly report: ReportInternalError;
  /** Called when a connection has closed and all its bytes are counted. */
  readonly onStreamEnd?: () => void;
}

export type PortIngresses = Readonly<Record<Exclude<Transport, 'udp'>, PortIngress> & { udp: UdpListeners }>;

/** Creates the relay shared by tcp and tls tunnels. Both carry raw connections, which are counted and drained together. */
export const makeRelay = (parts: PortIngressParts): Relay => {
  const { clock, report } = parts;
  return new Relay({
    ...parts,
    answerUnserved: (visitor, fault, onOver) => new HttpErrorFallback(visitor, fault, clock, report, onOver),
  });
};

export const makePortIngresses = (parts: PortIngressParts, relay = makeRelay(parts)): PortIngresses => {
  const { host, tunnels, gate } = parts;
  return {
    tcp: new TcpListeners({
      host,
      routeOn: (port) => tunnels.at({ kind: 'port', transport: 'tcp', port }),
      relay,
      gate,
    }),
    udp: makeUdpListeners(parts),
  };
};

const makeUdpListeners = (parts: PortIngressParts): UdpListeners => {
  const { tunnels, config, clock, onStreamEnd = () => {} } = parts;
  const { udp, limits } = config;
  return new UdpListeners({
    ...parts,
    onStreamEnd,
    range: portRanges(limits).udp,
    routeOn: (port) => tunnels.at({ kind: 'port', transport: 'udp', port }),
    balancer: parts.flowBalancer,
    rules: {
      flowsPerTunnel: limits.connections_per_tunnel,
      idleMs: udp.idle_secs * 1000,
      answeredIdleMs: udp.answered_idle_secs * 1000,
      newFlowsPerSecond: udp.new_flows_per_second,
      unconfirmedReplyBytes: udp.unconfirmed_reply_bytes,
    },
    addresses: new FlowAddresses({ perAddress: limits.connections_per_address }),
    accounts: new FlowAccounts({
      limit: parts.udpFlowsMax ?? UDP_FLOWS_MAX,
      accountShare: limits.account_share,
    }),
    deniedMax: UDP_DENIED_MAX,
    decide: (visitor, tunnel) => (parts.policies?.admits(tunnel, visitor) === false ? 'deny' : 'allow'),
    totals: new UdpTotals(),
    now: readOncePerTurn(clock),
  });
};

export const portRanges = (limits: ServerConfig['limits']): Readonly<Record<Transport, PortRange>> => ({
  tcp: { from: limits.tcp_port_range[0], to: limits.tcp_port_range[1] },
  udp: { from: limits.udp_port_range[0], to: limits.udp_port_range[1] },
});

/** Returns the tunnel protocols that the operator has disabled. */
export const switchedOff = ({ udp, p2p }: Pick<ServerConfig, 'udp' | 'p2p'>): TunnelProtocol[] => [
  ...(udp.enabled ? [] : (['udp'] as const)),
  ...(p2p.enabled ? [] : (['p2p'] as const)),
];
