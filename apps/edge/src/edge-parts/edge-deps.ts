// What the edge is given from outside, beside its configuration.
import type { Clock, Logger, Secret } from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import type { LinkFetch } from '../backend/platform-link.ts';

export interface EdgeDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  /** Uniform in [0, 1); chooses ports and names. */
  readonly random?: () => number;
  /** What GET /api/status shows. */
  readonly version?: string;
  /** Holds the journal; the configured one unless told. */
  readonly dataDir?: string;
  /** A platform in this process. Without one `[server] platform_url` says where it is; without that, too, the edge is alone. */
  readonly platform?: { readonly fetch: LinkFetch; readonly credential: Secret };
  /** Instead of all that. */
  readonly backend?: Backend;
}

/** The version of one that nobody has released. */
export const DEVELOPMENT = 'development';
