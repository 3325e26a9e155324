// Messages between the stack's parent process and its parts, sent over the IPC channel.

import { type ServerConfig } from '@tunnel/config/server';
import type { FaultValues } from '@tunnel/errors';
import { type BackupFigures, Secret } from '@tunnel/runtime';
import type { CrashError } from '../data-dir/crash-reports.ts';

/** The parts of a stack that run as separate processes. */
export type PartName = 'platform' | 'edge';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Message that starts a part. Contains unencrypted secrets, because only the two processes have access to the channel's socket pair. */
export interface StartPart {
  readonly kind: 'start';
  /** The configuration as read by the parent, with the chosen ports. Later changes to the config file have no effect on restarts. */
  readonly settings: object;
  readonly dataDir: string;
  readonly adminToken: string;
  /** Credential by which the edge authenticates to the platform. */
  readonly edgeCredential: string;
  /** For the platform: URL of the database. */
  readonly databaseUrl: string;
  /** For the platform: port of its loopback listener for the edge. 0 selects any free port. */
  readonly linkPort: number;
  /** For the edge: URL of the platform's loopback listener. */
  readonly platformUrl: string;
  /**
   * Secret by which the edge authenticates visitors' requests to the platform's host. Null if the edge does not serve the platform's
   * host.
   */
  readonly visitorSecret: string | null;
  /** For the edge: address at which the platform serves the API and the dashboard. */
  readonly platformAt: Address | null;
}

export type ToPart =
  | StartPart
  | { readonly kind: 'stop'; readonly drainMs: number }
  /** To the platform: URL of the edge's REST API. Null if the edge is not running. */
  | { readonly kind: 'edge-at'; readonly url: string | null }
  /** To the edge: number of restarts per part, for the edge's metrics. */
  | { readonly kind: 'restarts'; readonly restarts: Readonly<Record<string, number>> }
  /** To the edge: figures of the backups, for the edge's metrics. Not sent while backups are off. */
  | { readonly kind: 'backups'; readonly figures: BackupFigures };

/** Addresses of a running part. A value is null if the part has no such address. */
export interface PartReady {
  readonly kind: 'ready';
  readonly platform: {
    readonly api: Address & { readonly tls?: boolean };
    readonly link: Address;
    readonly simulatorUrl: string | null;
    /** Address (host:port) of the DNS responder for ACME challenges. Null if the responder is off, or if its port could not be opened. */
    readonly dns: string | null;
  } | null;
  readonly edge: {
    readonly control: Address;
    readonly http: Address;
    readonly https: Address | null;
    readonly api: Address & { readonly tls: boolean };
    readonly metrics: Address;
    readonly udpPorts: readonly number[];
    readonly stackApi: Address;
  } | null;
}

export type FromPart =
  /** The part has loaded the code and is ready for the start message. */
  | { readonly kind: 'loaded' }
  | PartReady
  /** Message of a server part: it could not start, and exits. */
  | {
      readonly kind: 'failed';
      readonly fault: { readonly code: string; readonly message: string; readonly values: FaultValues } | null;
      readonly error: CrashError;
    }
  /** Load figures of the part, sent periodically, because a killed part can no longer report. */
  | { readonly kind: 'counters'; readonly counters: Readonly<Record<string, number>> }
  | { readonly kind: 'crashed'; readonly error: CrashError };

/** Converts the configuration to plain values. `loadServerConfig` creates an equal configuration from the result. */
export const toPlainConfig = (config: ServerConfig): object =>
  JSON.parse(
    JSON.stringify(config, function (this: Record<string, unknown>, name: string, value: unknown) {
      const raw = this[name];
      return raw instanceof Secret ? raw.reveal() : value;
    }),
  ) as object;
