// What makes a kind of tunnel: what a registration of one says, what takes its streams to the local service, what is shown of it.
import type { ByteDuplex, DatagramStream, MuxStream, ReportInternalError } from '@tunnel/mux';
import type { ControlMessageInput, MessageOf, StreamHead } from '@tunnel/protocol';
import type { Clock, Secret } from '@tunnel/runtime';
import type { LocalAddresses } from '../../local/local-addresses.ts';
import type { ForwardHandlers } from '../../local/local-service.ts';
import type { LocalSpec, LocalTarget, LocalTls } from '../../local/local-target.ts';
import type { OpenFlows } from '../../local/open-flows.ts';
import type { ServiceTable } from '../../local/service-targets.ts';
import type { Traffic } from '../../local/traffic.ts';
import type { UnreportedDrops } from '../../local/unreported-drops.ts';
import type { Assignment } from '../../state/resume-state.ts';

/** What a tunnel of one kind or another can be asked for. */
export interface KindSpec extends Pick<LocalSpec, 'localSocket' | 'files'> {
  /** tcp, udp: this public port or none. */
  readonly remotePort?: number;
  /** udp: seconds of silence, 5 to 3600, after which a visitor's flow is over; as the edge has it when left out. */
  readonly idleSecs?: number;
  /** tcp, tls, and udp in `v2`: a PROXY protocol header before the first byte of each visitor, or the first datagram of its flow, says who it is. */
  readonly proxyProtocol?: 'v1' | 'v2';
  /** HTTP: other local services, by the names that `route` of a policy has for them: a port, or `host:port`. 16 at most. */
  readonly services?: ServiceTable;
  /** HTTP, tls: this name or none. */
  readonly subdomain?: string;
  /** HTTP, tls: a host of one's own in the place of a subdomain. */
  readonly domain?: string;
  /** HTTP: `keep` the visitor's Host (the default), `rewrite` it to the local address, or send this one. */
  readonly hostHeader?: string;
  /** HTTP: what the local service speaks, `http1` when left out. */
  readonly localProtocol?: 'http1' | 'h2c';
  /** https: false accepts any certificate of the local service. */
  readonly localTlsVerify?: boolean;
  /** HTTP: false keeps no request for a look or a replay, neither at the edge nor here. */
  readonly capture?: boolean;
  /** p2p: what other clients ask for; 1 to 63 letters, digits and inner hyphens. */
  readonly p2pName?: string;
  /** p2p: what both ends share, 16 to 1024 bytes. Only its SHA-256 leaves the process. */
  readonly secret?: Secret | string;
  /** p2p: what the local service speaks, `tcp` when left out; both ends say the same. */
  readonly service?: 'tcp' | 'udp';
  /** p2p: who may join with the secret: keys of the `account` (when left out), or `anyone` with a key of this edge. */
  readonly allow?: 'account' | 'anyone';
  /** p2p: false: through the relay alone. */
  readonly direct?: boolean;
}

/** What a program around the client needs to know of a protocol to show its tunnels. */
export interface ProtocolTraits {
  /** HTTP requests pass: they can be told of, kept and sent again. */
  readonly carriesRequests: boolean;
  /** Before the address of the local service; empty where there is nothing to say. */
  readonly localScheme: '' | 'https://';
}

type EndpointFields = Omit<
  Extract<ControlMessageInput, { type: 'RegisterTunnel' }>,
  'type' | 'request_id' | 'name' | 'protocol' | 'local_addr' | 'tunnel_id'
>;

export interface ForwardContext extends ForwardHandlers {
  /** What the edge says of the visitor. */
  readonly head: StreamHead;
  /** The visitor's end with somebody looking at the requests that pass; itself when nobody wants to know. */
  readonly tap: (visitor: ByteDuplex) => ByteDuplex;
}

/** A tunnel, as whoever takes a stream to its local service sees it. */
export interface ForwardedTunnel {
  readonly target: LocalTarget;
  /** Of its `services`; undefined: it has none of that name. */
  readonly serviceTarget: (name: string) => LocalTarget | undefined;
  readonly traffic: Traffic;
  /** Datagrams that the edge is to hear of. */
  readonly unreported: UnreportedDrops;
  readonly spec: KindSpec;
  /** Of the local host. */
  readonly addresses: LocalAddresses;
  readonly publicUrl: string;
}

export interface FlowContext {
  readonly flows: OpenFlows;
  readonly clock: Clock;
  /** The local service is not there. Told for every datagram; whoever listens says it less often. */
  readonly onLocalError: (error: unknown) => void;
  /** The flow is over, however it ended. Called exactly once. */
  readonly onDone: () => void;
  readonly report: ReportInternalError;
}

/** Takes one visitor's stream to the local service. */
export type Forwarder = (stream: MuxStream, tunnel: ForwardedTunnel, context: ForwardContext) => Promise<void>;

/** Takes one visitor's datagrams to the local service. */
export type FlowForwarder = (
  stream: DatagramStream,
  head: StreamHead,
  tunnel: ForwardedTunnel,
  context: FlowContext,
) => Promise<void>;

export interface TunnelKind extends ProtocolTraits {
  /** null: its visitors send no streams of bytes. */
  readonly forward: Forwarder | null;
  /** null: its visitors send no datagrams. */
  readonly forwardFlow: FlowForwarder | null;
  /** What client and edge have to agree on before one is asked for; null: every edge has it. */
  readonly capability: string | null;
  /** What of a spec says something about this kind. */
  readonly keys: readonly (keyof KindSpec)[];
  /** The port that a Host header leaves out; null: it always names one. */
  readonly defaultPort: number | null;
  /** Whether the local service may speak HTTP/2 without TLS. */
  readonly takesH2c: boolean;
  /** null: the local service does not speak TLS. */
  localTls(spec: KindSpec): LocalTls;
  /** Which public endpoint is asked for: exactly the one that was given; else what the edge once chose is preferred. */
  endpointFields(spec: KindSpec, previous: Assignment): EndpointFields;
  /** What of the edge's choice is asked for again after a loss. */
  remember(answer: MessageOf<'TunnelRegistered'>, spec: KindSpec): Assignment;
}
