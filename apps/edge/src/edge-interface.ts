// An edge as others see it: what it is given, and what can be done with it.
import type { Clock, Logger, Secret } from '@tunnel/runtime';
import type { AlertRates } from './alerts/alert-budgets.ts';
import type { Backend } from './backend/backend.ts';
import type { StackPlatform } from './backend/choose-backend.ts';
import type { ControlRateLimits } from './control/control-rate-limiter.rules.ts';
import type { PlatformAddress } from './routing/platform-route.ts';

/** What an edge is given from outside, beside its configuration. */
export interface EdgeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  /** Uniform in [0, 1); chooses ports and names. */
  readonly random?: () => number;
  /** What GET /api/status shows. */
  readonly version?: string;
  /** Holds the journal, in the configured one unless told; and who had which endpoint, which without it nobody writes down. */
  readonly dataDir?: string;
  /**
   * The platform of the same stack, which asks the REST over a loopback listener of its own. Without one `[server] platform_url` says
   * where the platform is; without that, too, the edge is alone.
   */
  readonly platform?: StackPlatform;
  /** Where that platform serves people, when its host is this edge's to answer (`platformHostAtEdge`). */
  readonly platformAt?: PlatformAddress;
  /** How often each part of the stack was started again; absent: nobody does that for this edge. */
  readonly restarts?: () => Readonly<Record<string, number>>;
  /** Instead of all that. */
  readonly backend?: Backend;
  /** Instead of those in the limits: for tests that need more, or reach less. */
  readonly alertRates?: AlertRates;
  readonly controlRateLimits?: ControlRateLimits;
  readonly udpFlowsMax?: number;
  /** How many descriptors this process may hold; as the system says, unless told. */
  readonly descriptors?: number;
}

export interface EdgeAddress {
  readonly host: string;
  readonly port: number;
}

export interface Edge {
  /** Rejects with one fault that names the port and its key when a port is taken; nothing then stays open. */
  start(): Promise<void>;
  /** Lets connections finish for up to `drainMs`, then ends them. */
  stop(options: { readonly drainMs: number }): Promise<void>;
  /** Ends everything at once, without a goodbye. */
  stopNow(): void;
  /** How busy it is: what is kept of it when it crashes. */
  readonly counters: Readonly<Record<string, number>>;
  /** Only while it runs. */
  readonly addresses: {
    readonly control: EdgeAddress;
    readonly http: EdgeAddress;
    /** null: there is no certificate. */
    readonly https: EdgeAddress | null;
    readonly api: EdgeAddress & { readonly tls: boolean };
    readonly metrics: EdgeAddress;
    /** The two UDP ports for the path of datagrams and for P2P; none: nothing needs them. */
    readonly udpPorts: readonly number[];
    /** Where the platform of the same stack asks the REST; null: there is none. */
    readonly stackApi: EdgeAddress | null;
  };
}
