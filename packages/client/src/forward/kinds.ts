// The kinds of tunnels: what a registration of one says, what takes its streams to the local service, what is shown of it.
// A new protocol is a file beside this one, and a line in the table.
import type { ByteDuplex, MuxStream } from '@tunnel/mux';
import type { ControlMessageInput, MessageOf, TunnelProtocol } from '@tunnel/protocol';
import type { TunnelEntry } from '../tunnel.ts';
import type { Assignment, TunnelSpec } from '../tunnel-spec.ts';
import { httpKind, httpsKind } from './http.ts';
import type { ForwardHandlers, LocalTarget } from './local-service.ts';
import { tcpKind } from './tcp.ts';

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
  readonly tap: (visitor: ByteDuplex, tunnel: TunnelEntry) => ByteDuplex;
}

/** Takes one visitor's stream to the local service. */
export type Forwarder = (stream: MuxStream, tunnel: TunnelEntry, context: ForwardContext) => Promise<void>;

export interface TunnelKind extends ProtocolTraits {
  readonly forward: Forwarder;
  /** The port that a Host header leaves out; null: it always names one. */
  readonly defaultPort: number | null;
  /** Whether the local service may speak HTTP/2 without TLS. */
  readonly takesH2c: boolean;
  /** null: the local service does not speak TLS. */
  localTls(spec: TunnelSpec): LocalTarget['tls'];
  /** Which public endpoint is asked for: exactly the one that was given; else what the edge once chose is preferred. */
  endpointFields(spec: TunnelSpec, previous: Assignment): EndpointFields;
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
