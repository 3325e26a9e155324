// One registered, living tunnel, as ingress, relay and the REST see it.
import type { Owner } from '@tunnel/core';
import type { MuxSession } from '@tunnel/mux';

export interface TunnelCounters {
  /** Public connections given to this tunnel. */
  requests: number;
  /** Bytes on its streams, both ways, without our framing. */
  bytes: number;
  openConnections: number;
}

export interface Tunnel {
  readonly tunnelId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: 'tcp';
  /** What people call it: the port, as a string. */
  readonly label: string;
  readonly publicUrl: string;
  readonly assignedPort: number;
  readonly clientAddr: string;
  readonly owner: Owner;
  /** Milliseconds since the epoch. */
  readonly connectedSince: number;
  /** Written by relay, read by everyone. */
  readonly counters: TunnelCounters;
  /** `mux` is null while the client is away. */
  readonly session: { readonly mux: MuxSession | null };
}
