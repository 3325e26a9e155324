// What makes a kind of tunnel: what a registration of one says, what takes its streams to the local service, what is shown of it.
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

/** What a program around the client needs to know of a protocol to show its tunnels. */
export interface ProtocolTraits {
  /** HTTP requests pass: they can be told of, kept and sent again. */
  readonly carriesRequests: boolean;
  /** Before the address of the local service; empty where there is nothing to say. */
  readonly localScheme: '' | 'https://';
}

type PreferredEndpoint = Pick<
  Extract<ControlMessageInput, { type: 'RegisterTunnel' }>,
  'preferred_port' | 'preferred_subdomain'
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
  readonly asked: TunnelSpec;
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
  /** The port that a Host header leaves out; null: it always names one. */
  readonly defaultPort: number | null;
  /** Whether the local service may speak HTTP/2 without TLS. */
  readonly takesH2c: boolean;
  /** null: the local service does not speak TLS. */
  localTls(spec: TunnelSpec): LocalTls;
  /** The endpoint that the edge once chose, where the owner chooses none. */
  preferredEndpoint(spec: TunnelSpec, previous: Assignment): PreferredEndpoint;
  /** What of the edge's choice is asked for again after a loss. */
  remember(answer: MessageOf<'TunnelRegistered'>, spec: TunnelSpec): Assignment;
}
