// What the stack's parent and its parts say to each other over the channel between them.

import { type ServerConfig } from '@tunnel/config/server';
import type { FaultValues } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import type { CrashError } from '../data-dir/crash-reports.ts';

/** The parts that are processes of their own. */
export type PartName = 'platform' | 'edge';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Secrets are in clear: the channel is a pair of sockets that nobody else holds. */
export interface StartPart {
  readonly kind: 'start';
  /** As the parent has read it, with the ports that were chosen: a file that changes later changes nothing. */
  readonly settings: object;
  readonly dataDir: string;
  readonly adminToken: string;
  /** By which the edge shows itself to the platform. */
  readonly edgeCredential: string;
  /** Of the platform: where its tables are. */
  readonly databaseUrl: string;
  /** Of the platform: the port of its loopback listener for the edge; 0: any free one. */
  readonly linkPort: number;
  /** Of the edge: that listener. */
  readonly platformUrl: string;
  /** By which the edge vouches for its visitors where it answers for the platform's host; null: it does not. */
  readonly visitorSecret: string | null;
  /** Of the edge: where the platform serves people. */
  readonly platformAt: Address | null;
}

export type ToPart =
  | StartPart
  | { readonly kind: 'stop'; readonly drainMs: number }
  /** To the platform: where the edge's REST is; null: it does not run. */
  | { readonly kind: 'edge-at'; readonly url: string | null }
  /** To the edge, for its metrics. */
  | { readonly kind: 'restarts'; readonly restarts: Readonly<Record<string, number>> };

/** Where a part that runs can be reached; null: it has no such thing. */
export interface PartReady {
  readonly kind: 'ready';
  readonly platform: {
    readonly api: Address & { readonly tls?: boolean };
    readonly link: Address;
    readonly simulatorUrl: string | null;
    /** host:port of the responder for challenges; null: there is none, or its port could not be opened. */
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
  /** Its code is there: it may be told to start. */
  | { readonly kind: 'loaded' }
  | PartReady
  /** It could not start, and ends. */
  | {
      readonly kind: 'failed';
      readonly fault: { readonly code: string; readonly message: string; readonly values: FaultValues } | null;
      readonly error: CrashError;
    }
  /** How busy it is, now and then: what is known of it when it is killed. */
  | { readonly kind: 'counters'; readonly counters: Readonly<Record<string, number>> }
  | { readonly kind: 'crashed'; readonly error: CrashError };

/** The configuration as plain values, from which `loadServerConfig` makes the same one again. */
export const toPlainConfig = (config: ServerConfig): object =>
  JSON.parse(
    JSON.stringify(config, function (this: Record<string, unknown>, name: string, value: unknown) {
      const raw = this[name];
      return raw instanceof Secret ? raw.reveal() : value;
    }),
  ) as object;
