// The kinds of tunnels: what a registration of one says, what takes its streams to the local service, what is shown of it.
// A new protocol is a file beside this one, and a line in the table.
import type { ByteDuplex, MuxStream } from '@tunnel/mux';
import type { ControlMessageInput, MessageOf, TunnelProtocol } from '@tunnel/protocol';
import { httpKind, httpsKind } from './http.ts';
import type { ForwardHandlers, LocalTarget } from './local-service.ts';
import { tcpKind } from './tcp.ts';
import type { Traffic } from './traffic.ts';

/** What a tunnel of one kind or another can be asked for. */
export interface KindSpec {
  /** tcp: this public port or none. */
  readonly remotePort?: number;
  /** HTTP: this name or none. */
  readonly subdomain?: string;
  /** HTTP: `keep` the visitor's Host (the default), `rewrite` it to the local address, or send this one. */
  readonly hostHeader?: string;
  /** HTTP: what the local service speaks, `http1` when left out. */
  readonly localProtocol?: 'http1' | 'h2c';
  /** https: false accepts any certificate of the local service. */
  readonly localTlsVerify?: boolean;
  /** HTTP: false keeps no request for a look or a replay, neither at the edge nor here. */
  readonly capture?: boolean;
}

/** What the edge gave an earlier run or connection, to be asked for again. */
export interface Assignment {
  /** Left out once the session that knew it is gone. */
  readonly tunnelId?: string;
  readonly assignedPort?: number;
  readonly assignedSubdomain?: string;
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
  /** The visitor's end with somebody looking at the requests that pass; itself when nobody wants to know. */
  readonly tap: (visitor: ByteDuplex) => ByteDuplex;
}

/** A tunnel, as whoever takes a stream to its local service sees it. */
export interface ForwardedTunnel {
  readonly target: LocalTarget;
  readonly traffic: Traffic;
  readonly spec: KindSpec;
}

/** Takes one visitor's stream to the local service. */
export type Forwarder = (stream: MuxStream, tunnel: ForwardedTunnel, context: ForwardContext) => Promise<void>;

export interface TunnelKind extends ProtocolTraits {
  readonly forward: Forwarder;
  /** The port that a Host header leaves out; null: it always names one. */
  readonly defaultPort: number | null;
  /** Whether the local service may speak HTTP/2 without TLS. */
  readonly takesH2c: boolean;
  /** null: the local service does not speak TLS. */
  localTls(spec: KindSpec): LocalTarget['tls'];
  /** Which public endpoint is asked for: exactly the one that was given; else what the edge once chose is preferred. */
  endpointFields(spec: KindSpec, previous: Assignment): EndpointFields;
  /** What of the edge's choice is asked for again after a loss. */
  remember(answer: MessageOf<'TunnelRegistered'>): Assignment;
}

const KINDS: Readonly<Record<TunnelProtocol, TunnelKind>> = {
  tcp: tcpKind,
  http: httpKind,
  https: httpsKind,
  // Names that the wire knows and no edge takes yet: asked for like tcp, so that it is the edge that says so.
  udp: tcpKind,
  p2p: tcpKind,
};

export const kindOf = (protocol: TunnelProtocol): TunnelKind => KINDS[protocol];

export const protocolTraits = (protocol: TunnelProtocol): ProtocolTraits => KINDS[protocol];
