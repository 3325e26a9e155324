// The tunnel client as its user holds it: tunnels to open, events to hear, one way to end.
import type { Fault } from '@tunnel/errors';
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
  /** Ends on purpose: no new visitors from now on; those that are there have `drainMs`. Calling it again only shortens that. */
  close(options?: CloseOptions): Promise<void>;
  /** Settles when the client is over; with a fault when it did not end by itself. */
  readonly closed: Promise<Fault | undefined>;
}
