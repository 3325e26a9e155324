// Who may use this edge, and who is told what happens on it. Every implementation passes backend.conformance.ts.
import type { Owner } from '@tunnel/core';
import type { Fault } from '@tunnel/errors';

/** `fault` is ready to be said to the caller; a retryable one means "cannot know right now", not "no". */
export type KeyVerdict =
  | { readonly ok: true; readonly owner: Owner; readonly keyId: string }
  | { readonly ok: false; readonly fault: Fault };

export interface TunnelOpened {
  readonly tunnelId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly protocol: string;
  readonly label: string;
  readonly owner: Owner;
  readonly keyId: string;
  readonly clientAddr: string;
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

/** What lost its right to be here: one key, or all of an account. */
export interface Revocation {
  readonly keyId?: string;
  readonly accountId?: string;
  readonly fault: Fault;
}

export interface Backend {
  /** Never rejects and never logs the key. */
  verifyKey(token: string): Promise<KeyVerdict>;
  tunnelOpened(event: TunnelOpened): void;
  tunnelClosed(event: TunnelClosed): void;
  /** Calls back for every later revocation; the returned function ends that. */
  onRevoked(listener: (revocation: Revocation) => void): () => void;
  start(): Promise<void>;
  stop(): Promise<void>;
}
