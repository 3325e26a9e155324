// Responses of a running client over its socket, with the names and fields printed by `tunnel status --json`.
import type { ClientState } from '@tunnel/client';
import type { JsonEvent } from '../output/json.ts';
import type { TunnelSource } from './readiness.rules.ts';

/**
 * State of a tunnel in a running client. opening: requested but not answered, or requested again · refused: rejected by the edge ·
 * closing: no new visitors, current visitors are still served.
 */
export type RunningTunnelState = 'opening' | 'open' | 'refused' | 'closing';

export interface TunnelStatus {
  readonly name: string;
  /** Null until the edge has answered, and for a connection to a peer. */
  readonly tunnel_id: string | null;
  readonly protocol: string;
  readonly public_url: string | null;
  readonly local: string | null;
  readonly source: TunnelSource;
  readonly state: RunningTunnelState;
  readonly group: string | null;
  /** Null without a health check, and until the health is known. */
  readonly healthy: boolean | null;
  readonly request_count: number;
  /** Bytes proxied in both directions together. */
  readonly bytes_proxied: number;
  readonly last_error: string | null;
}

export interface ClientStatus {
  readonly pid: number;
  readonly version: string;
  readonly since: string;
  /** Path of the config file read by the client. Null without a config file. */
  readonly config: string | null;
  readonly server: string;
  readonly state: Exclude<ClientState, 'closed'>;
  readonly session_id: string | null;
  readonly region_id: string | null;
  readonly latency_ms: number | null;
  readonly carriers: number;
  /** URL of the proxy in use, without the password. Null for a direct connection. */
  readonly proxy: string | null;
  readonly log_file: string | null;
  readonly tunnels: readonly TunnelStatus[];
}

/** Response to `GET /inspector`. */
export interface InspectorAnswer {
  readonly inspect_url: string | null;
}

/** An event of a client, sent as one line of `GET /logs`. */
export interface LogEntry {
  readonly at: string;
  /** Text of the event for people. Empty for an event meant only for programs. */
  readonly text: string;
  /** The event for programs. Null for an event meant only for people. */
  readonly event: JsonEvent | null;
}
