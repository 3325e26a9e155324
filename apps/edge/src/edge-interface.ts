// Interface of an edge: its dependencies and its public methods.
import type { BackupFigures, Clock, Logger, Secret } from '@tunnel/runtime';
import type { AlertRates } from './alerts/alert-budgets.ts';
import type { Backend } from './backend/backend.ts';
import type { StackPlatform } from './backend/choose-backend.ts';
import type { ControlRateLimits } from './control/control-rate-limiter.rules.ts';
import type { PlatformAddress } from './routing/platform-route.ts';

/** Dependencies of an edge in addition to its configuration. */
export interface EdgeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  /** Returns uniform random numbers in [0, 1), for choosing ports and names. */
  readonly random?: () => number;
  /** Version in the response of GET /api/status. */
  readonly version?: string;
  /**
   * Data folder. If undefined, the journal is in the configured `data_dir`, and the file that records the owner of each endpoint is not
   * written.
   */
  readonly dataDir?: string;
  /**
   * Platform of the same stack. Calls the edge's REST API on a separate loopback listener. If undefined, `[server] platform_url` locates
   * the platform. Without both settings, the edge runs without a platform.
   */
  readonly platform?: StackPlatform;
  /**
   * Address where the stack's platform serves browsers. Set if the edge answers requests for the platform's host (`platformHostAtEdge`).
   */
  readonly platformAt?: PlatformAddress;
  /** Number of restarts per part of the stack. Undefined if the edge runs without a supervisor. */
  readonly restarts?: () => Readonly<Record<string, number>>;
  /** Figures of the stack's backups. Null while backups are off. Undefined if the edge runs without a supervisor. */
  readonly backups?: () => BackupFigures | null;
  /** Backend for tests. If undefined, the configuration and the `platform` field determine the backend. */
  readonly backend?: Backend;
  /** Alert rates that replace the default limits, for tests with more alerts or lower limits. */
  readonly alertRates?: AlertRates;
  readonly controlRateLimits?: ControlRateLimits;
  readonly udpFlowsMax?: number;
  /** Maximum file descriptors of the process. Default: the limit reported by the operating system. */
  readonly descriptors?: number;
}

export interface EdgeAddress {
  readonly host: string;
  readonly port: number;
}

export interface Edge {
  /**
   * Starts all parts of the edge. If a port is taken, rejects with a fault that names the port and its config key, and leaves no port
   * open.
   */
  start(): Promise<void>;
  /** Stops the edge. Connections have up to `drainMs` to finish; the remaining connections are then closed. */
  stop(options: { readonly drainMs: number }): Promise<void>;
  /** Closes all connections at once, without notifying clients. */
  stopNow(): void;
  /** Load figures of the edge. Kept in the crash record if the process crashes. */
  readonly counters: Readonly<Record<string, number>>;
  /** Addresses of the open ports. Available only while the edge is running. */
  readonly addresses: {
    readonly control: EdgeAddress;
    readonly http: EdgeAddress;
    /** Address of the HTTPS port. Null if the edge has no TLS port. */
    readonly https: EdgeAddress | null;
    readonly api: EdgeAddress & { readonly tls: boolean };
    readonly metrics: EdgeAddress;
    /** The two UDP ports for datagram paths and P2P. Empty if no feature needs the ports. */
    readonly udpPorts: readonly number[];
    /** REST address for the platform of the same stack. Null without such a platform. */
    readonly stackApi: EdgeAddress | null;
  };
}
