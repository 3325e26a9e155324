// The interface of a tunnel kind: registration fields, forwarding to the local service, and display.
import type { ByteDuplex, DatagramStream, MuxStream, ReportInternalError } from '@tunnel/mux';
import type { ControlMessageInput, MessageOf, StreamHead } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import type { TunnelSpec } from '@tunnel/tunnel-spec';
import type { LocalAddresses } from '../../local/local-addresses.ts';
import type { ForwardHandlers } from '../../local/local-service.ts';
import type { LocalTarget, LocalTls } from '../../local/local-target.ts';
import type { OpenFlows } from '../../local/open-flows.ts';
import type { Traffic } from '../../local/traffic.ts';
import type { UnreportedDrops } from '../../local/unreported-drops.ts';
import type { Assignment } from '../../state/resume-state.ts';

/** Traits of a tunnel protocol, for programs that display tunnels. */
export interface ProtocolTraits {
  /** True if HTTP requests pass through the tunnel, which can be reported, captured and replayed. */
  readonly carriesRequests: boolean;
  /** Prefix of the local service's address in displays. Empty without a prefix. */
  readonly localScheme: '' | 'https://';
}

type PreferredEndpoint = Pick<
  Extract<ControlMessageInput, { type: 'RegisterTunnel' }>,
  'preferred_port' | 'preferred_subdomain'
>;

export interface ForwardContext extends ForwardHandlers {
  /** The visitor as described by the edge when it opened the stream. */
  readonly head: StreamHead;
  /** Wraps the visitor's end so that passing requests can be observed. Returns the visitor's end unchanged if there are no observers. */
  readonly tap: (visitor: ByteDuplex) => ByteDuplex;
}

/** The parts of a tunnel needed to forward a stream to its local service. */
export interface ForwardedTunnel {
  readonly target: LocalTarget;
  /** Returns the target of a named local service. Undefined for an unknown name. */
  readonly serviceTarget: (name: string) => LocalTarget | undefined;
  readonly traffic: Traffic;
  /** Datagrams of the tunnel that were dropped and not yet reported to the edge. */
  readonly unreported: UnreportedDrops;
  readonly asked: TunnelSpec;
  /** Resolved IP addresses of the local service's host. */
  readonly addresses: LocalAddresses;
  readonly publicUrl: string;
}

export interface FlowContext {
  readonly flows: OpenFlows;
  readonly clock: Clock;
  /** Called for every datagram that the local service did not accept. The listener limits the rate of reports. */
  readonly onLocalError: (error: unknown) => void;
  /** Called exactly once when the visitor's UDP flow has ended for any reason. */
  readonly onDone: () => void;
  readonly report: ReportInternalError;
}

/** Forwards one visitor's stream to the local service. */
export type Forwarder = (stream: MuxStream, tunnel: ForwardedTunnel, context: ForwardContext) => Promise<void>;

/** Forwards one visitor's datagrams to the local service. */
export type FlowForwarder = (
  stream: DatagramStream,
  head: StreamHead,
  tunnel: ForwardedTunnel,
  context: FlowContext,
) => Promise<void>;

export interface TunnelKind extends ProtocolTraits {
  /** Forwards visitors' byte streams. Null if visitors of this kind of tunnel send none. */
  readonly forward: Forwarder | null;
  /** Forwards visitors' datagrams. Null if visitors of this kind of tunnel send none. */
  readonly forwardFlow: FlowForwarder | null;
  /** Capability that the edge must support. Null if every edge supports the kind. */
  readonly capability: string | null;
  /** Port that the Host header omits, because it is the protocol's default. Null if the header always contains the port. */
  readonly defaultPort: number | null;
  /** True if the local service may speak HTTP/2 without TLS. */
  readonly takesH2c: boolean;
  /** TLS settings of the local service. Null without TLS. */
  localTls(spec: TunnelSpec): LocalTls;
  /** Returns the endpoint assigned earlier by the edge, for tunnels without a chosen endpoint. */
  preferredEndpoint(spec: TunnelSpec, previous: Assignment): PreferredEndpoint;
  /** Returns the part of the edge's assignment to request again after a reconnect. */
  remember(answer: MessageOf<'TunnelRegistered'>, spec: TunnelSpec): Assignment;
}
