// Who may use this edge, and who is told what happens on it. Every implementation passes backend.conformance.ts.

import type { Fault } from '@tunnel/errors';
import type { Owner, TunnelProtocol } from '@tunnel/rules/tunnels';
import type { EdgeCertificates } from './certificates/edge-certificates.ts';
import type { AdmissionRequest } from './names/admission-request.ts';
import type { ReservedNames } from './names/reserved-names.ts';
import type { DomainKeepers } from './names/verified-domains.ts';
import type { TunnelCounters } from './tunnel-counters.ts';

/** `fault` is ready to be said to the caller; a retryable one means "cannot know right now", not "no". */
export type KeyVerdict =
  | { readonly ok: true; readonly owner: Owner; readonly keyId: string; readonly profile?: OwnerProfile | undefined }
  | { readonly ok: false; readonly fault: Fault };

/** What the owner of a key is shown of the account; only a platform knows it. */
export interface OwnerProfile {
  readonly account: string;
  readonly plan: string;
  readonly dashboardUrl: string;
}

/** A tunnel that would be opened. */
export interface TunnelAdmissionRequest extends AdmissionRequest {
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: TunnelProtocol;
  readonly keyId: string;
  /** What the client calls its computer. */
  readonly clientName?: string | undefined;
  /** A subdomain of the client's choice. */
  readonly customSubdomain: boolean;
  /** Milliseconds since the epoch. */
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
  /** What the client calls its computer. */
  readonly clientName?: string | undefined;
  /** The living ones: they go on counting, also for connections that outlive the tunnel. */
  readonly counters: TunnelCounters;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface TunnelClosed {
  readonly tunnelId: string;
  readonly owner: Owner;
  readonly requests: number;
  readonly bytes: number;
  /** Milliseconds since the epoch: for a lost client the time of the loss, not of its discovery. */
  readonly at: number;
}

/** What lost its right to be here: one key, all of an account, or some tunnels alone. */
export interface Revocation {
  readonly keyId?: string;
  readonly accountId?: string;
  /** In the order in which they end. Their clients are told, and go on with what else they have. */
  readonly tunnelIds?: readonly string[];
  readonly fault: Fault;
}

export interface Backend {
  /** Never rejects and never logs the key. */
  verifyKey(token: string): Promise<KeyVerdict>;
  /** May it be opened, and there? null: yes; the name is its account's from now on. Not asked for a tunnel that comes back. Never rejects. */
  admitTunnel(event: TunnelAdmissionRequest): Promise<Fault | null>;
  /** The search for the endpoint of an admitted tunnel is over. One that was not opened by now never will be. */
  admissionEnded(tunnelId: string): void;
  tunnelOpened(event: TunnelOpened): void;
  tunnelClosed(event: TunnelClosed): void;
  /** Some tunnel's stream has ended: what it carried can be told. Called often, so it must cost nothing. */
  streamEnded(): void;
  /** Calls back for every later revocation; the returned function ends that. */
  onRevoked(listener: (revocation: Revocation) => void): () => void;
  /** Calls back when own domains changed hands; the returned function ends that. One that only lapsed is not told of: its tunnels stay. */
  onDomainsChanged(listener: (keepers: DomainKeepers) => void): () => void;
  /** What is known as reserved or verified: for visitors whose tunnel is away, and for ports that are given out. */
  readonly reserved: ReservedNames;
  /** Those that come by themselves; absent: the edge has its files alone. */
  readonly certificates?: EdgeCertificates | undefined;
  /** Where people reach the pages of the platform that this edge belongs to; null: not known, or it belongs to none. */
  readonly platformUrl?: string | null;
  /** What waits for the edge's own disk, and how often that became too much; absent: nothing is kept there. */
  readonly journalQueue?: { readonly bytes: number; readonly timesFull: number };
  start(): Promise<void>;
  /** The edge's ports are open. */
  ready(): void;
  stop(): Promise<void>;
}
