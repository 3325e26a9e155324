// One registered, living tunnel, as ingress, relay and the REST see it.
import type { GroupMember, MemberHealth, Owner, PublicEndpoint, TunnelGroup } from '@tunnel/core';
import type { MuxSession } from '@tunnel/mux';

export interface TunnelCounters {
  /** HTTP requests, or public connections of a tcp tunnel. */
  requests: number;
  /** Those of them that another member of the group may yet serve instead. */
  pendingFailover: number;
  /** Bytes on its streams, both ways, without our framing. */
  bytes: number;
  openConnections: number;
}

/** How requests are put to the local service of an http tunnel. */
export interface HttpSettings {
  /** null: the visitor's Host is kept; else what stands there instead. */
  readonly hostHeader: string | null;
  readonly localProtocol: 'http1' | 'h2c';
  readonly capture: boolean;
}

export interface Tunnel extends GroupMember {
  readonly tunnelId: string;
  readonly sessionId: string;
  readonly name: string;
  /** `https`: the local service speaks TLS, which is the client's business; the public sees `http`. */
  readonly protocol: 'tcp' | 'http' | 'https';
  /** Where the public reaches it. */
  readonly endpoint: PublicEndpoint;
  /** null: it stands alone. */
  readonly group: TunnelGroup<Tunnel> | null;
  /** What people call it: the subdomain, or the port as a string; a member has its group's. */
  readonly label: string;
  readonly publicUrl: string;
  readonly assignedPort: number | null;
  readonly http: HttpSettings | null;
  readonly clientAddr: string;
  readonly owner: Owner;
  /** Milliseconds since the epoch. */
  readonly connectedSince: number;
  /** Written by relay and ingress, read by everyone. */
  readonly counters: TunnelCounters;
  /** What its client reports. It concerns only members: a tunnel that stands alone is served whatever its health. */
  readonly health: MemberHealth;
  readonly alertWebhook: string | null;
  /** `mux` is null while the client is away. */
  readonly session: { readonly mux: MuxSession | null };
}
