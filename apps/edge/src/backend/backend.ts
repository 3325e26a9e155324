// Interface of a backend, which authenticates keys, admits tunnels and receives events of the edge. Every implementation passes
// backend.conformance.ts.

import type { Fault } from '@tunnel/errors';
import type { Owner, TunnelProtocol } from '@tunnel/rules/tunnels';
import type { EdgeCertificates } from './certificates/edge-certificates.ts';
import type { AdmissionRequest } from './names/admission-request.ts';
import type { ReservedNames } from './names/reserved-names.ts';
import type { DomainKeepers } from './names/verified-domains.ts';
import type { TunnelCounters } from './tunnel-counters.ts';

/**
 * Result of checking a key. `fault` can be sent to the caller as is. A retryable fault means that the key cannot be checked right now,
 * not that the key was rejected.
 */
export type KeyVerdict =
  | { readonly ok: true; readonly owner: Owner; readonly keyId: string; readonly profile?: OwnerProfile | undefined }
  | { readonly ok: false; readonly fault: Fault };

/** Account details shown to the owner of a key. Only a platform provides these details. */
export interface OwnerProfile {
  readonly account: string;
  readonly plan: string;
  readonly dashboardUrl: string;
}

/** Request for admission of a tunnel that is about to open. */
export interface TunnelAdmissionRequest extends AdmissionRequest {
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly keyId: string;
  /** Name that the client reports for its computer. */
  readonly clientName?: string | undefined;
  /** Whether the client requested a specific subdomain. */
  readonly customSubdomain: boolean;
  /** Time of the request in milliseconds since the epoch. */
  readonly at: number;
}

export interface TunnelOpened {
  readonly tunnelId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly label: string;
  readonly publicUrl: string;
  readonly owner: Owner;
  readonly keyId: string;
  readonly clientAddr: string;
  /** Name that the client reports for its computer. */
  readonly clientName?: string | undefined;
  /** Live counters of the tunnel. The counters keep counting, even for connections that outlive the tunnel. */
  readonly counters: TunnelCounters;
  /** Time of opening in milliseconds since the epoch. */
  readonly at: number;
}

export interface TunnelClosed {
  readonly tunnelId: string;
  readonly owner: Owner;
  readonly requests: number;
  readonly bytes: number;
  /** Time of closing in milliseconds since the epoch. For a lost client, the time of the loss, not the time of its detection. */
  readonly at: number;
}

/** Revocation of access for a key, for a whole account, or for certain tunnels only. */
export interface Revocation {
  readonly keyId?: string;
  readonly accountId?: string;
  /** Tunnels to close, in this order. Their clients are notified and keep their remaining tunnels. */
  readonly tunnelIds?: readonly string[];
  readonly fault: Fault;
}

export interface Backend {
  /** Checks a key. Never rejects, and never logs the key. */
  verifyKey(token: string): Promise<KeyVerdict>;
  /**
   * Decides whether a tunnel can be opened at the requested endpoint. Returns null if admitted; the name then belongs to the tunnel's
   * account. Not called for a returning tunnel. Never rejects.
   */
  admitTunnel(event: TunnelAdmissionRequest): Promise<Fault | null>;
  /** Called when the search for the endpoint of an admitted tunnel has ended. A tunnel not opened by then is never opened. */
  admissionEnded(tunnelId: string): void;
  tunnelOpened(event: TunnelOpened): void;
  tunnelClosed(event: TunnelClosed): void;
  /** Called when a stream of any tunnel has ended, so that its usage can be reported. Called often, so the call must be cheap. */
  streamEnded(): void;
  /** Calls the listener for every later revocation. The returned function removes the listener. */
  onRevoked(listener: (revocation: Revocation) => void): () => void;
  /**
   * Calls the listener when custom domains have changed owners. The returned function removes the listener. Domains that merely lapsed
   * are not reported, because their tunnels stay open.
   */
  onDomainsChanged(listener: (keepers: DomainKeepers) => void): () => void;
  /** Known reserved names and verified domains. Used for visitors of a disconnected tunnel and for assigning ports. */
  readonly reserved: ReservedNames;
  /** Automatically issued certificates. Undefined if the edge uses only certificate files. */
  readonly certificates?: EdgeCertificates | undefined;
  /** URL of the platform's web pages. Null if the URL is unknown, or if the edge has no platform. */
  readonly platformUrl?: string | null;
  /** Bytes waiting to be written to the edge's disk, and how often the limit was exceeded. Undefined if the backend keeps no journal. */
  readonly journalQueue?: { readonly bytes: number; readonly timesFull: number };
  start(): Promise<void>;
  /** Called when the edge's ports are open for clients and visitors. */
  ready(): void;
  stop(): Promise<void>;
}
