// The tunnel client as its user holds it: tunnels to open, events to hear, one way to end.
import type { Fault } from '@tunnel/errors';
import type { Inspector } from './inspector/inspector.ts';
import type { RequestListener } from './requests/request-events.ts';
import type { StatusListener } from './status.ts';
import type { Tunnel } from './tunnel.ts';
import type { TunnelSpec } from './tunnel-spec.ts';

export interface CloseOptions {
  /** How long visitors that are being served may take; 0, the default, cuts them off. */
  readonly drainMs?: number;
}

export type ClientState = 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed';

export interface Client {
  readonly state: ClientState;
  readonly tunnels: readonly Tunnel[];
  /** Visitors being served now. */
  readonly openConnections: number;
  /** Settles with the edge's answer; rejects with its fault when it refuses. */
  open(spec: TunnelSpec): Promise<Tunnel>;
  /** Returns what ends the listening. */
  onStatus(listener: StatusListener): () => void;
  /** Requests of http tunnels as they pass, on connections that begin from now on; looking costs a little. Returns what ends it. */
  onRequest(listener: RequestListener): () => void;
  /** A page on 127.0.0.1 with the last requests, to look at and to send again. null: no port of its range is free. */
  openInspector(): Promise<Inspector | null>;
  /** Ends on purpose: no new visitors from now on; those that are there have `drainMs`. Calling it again only shortens that. */
  close(options?: CloseOptions): Promise<void>;
  /** Settles when the client is over; with a fault when it did not end by itself. */
  readonly closed: Promise<Fault | undefined>;
}
