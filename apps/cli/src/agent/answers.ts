// What a running client answers over its socket, with the names and fields that `tunnel status --json` prints.
import type { ClientState } from '@tunnel/client';
import type { JsonEvent } from '../output/json.ts';
import type { TunnelSource } from './readiness.rules.ts';

/** opening: not answered yet, or asked for again · refused: the edge will not have it · closing: no new visitors, some are left. */
export type RunningTunnelState = 'opening' | 'open' | 'refused' | 'closing';

export interface TunnelStatus {
  readonly name: string;
  /** null: the edge has not answered, or it is a connection to a peer. */
  readonly tunnel_id: string | null;
  readonly protocol: string;
  readonly public_url: string | null;
  readonly local: string | null;
  readonly source: TunnelSource;
  readonly state: RunningTunnelState;
  readonly group: string | null;
  /** null: nothing is probed, or not yet. */
  readonly healthy: boolean | null;
  readonly request_count: number;
  /** Sum of both directions. */
  readonly bytes_proxied: number;
  readonly last_error: string | null;
}

export interface ClientStatus {
  readonly pid: number;
  readonly version: string;
  readonly since: string;
  /** Path of the config file that the client read; null without a file. */
  readonly config: string | null;
  readonly server: string;
  readonly state: Exclude<ClientState, 'closed'>;
  readonly session_id: string | null;
  readonly region_id: string | null;
  readonly latency_ms: number | null;
  readonly carriers: number;
  /** URL of the proxy in use, without the password; null for a direct connection. */
  readonly proxy: string | null;
  readonly log_file: string | null;
  readonly tunnels: readonly TunnelStatus[];
}

/** What a client answers to `GET /inspector`. */
export interface InspectorAnswer {
  readonly inspect_url: string | null;
}

/** One event of a client, as a line of `GET /logs`. */
export interface LogEntry {
  readonly at: string;
  /** Empty where people are told nothing. */
  readonly text: string;
  /** null where programs are told nothing. */
  readonly event: JsonEvent | null;
}
