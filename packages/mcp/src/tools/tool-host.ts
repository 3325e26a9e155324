// What a set of tools stands on: a client on this machine, or an account at the platform. Each of them has its own reasons to refuse, and
// refuses with a Fault.
import type {
  ApiToken,
  CapturedRequest,
  EdgeTunnel,
  PlatformPools,
  TunnelLogEntry,
  UsageChartPoint,
  UsageSummary,
} from '@tunnel/contract';

export const TOOL_NAMES = [
  'close_tunnel',
  'get_request',
  'get_status',
  'get_tunnel',
  'get_usage',
  'list_keys',
  'list_pools',
  'list_requests',
  'list_tunnels',
  'open_tunnel',
  'replay_request',
  'run_doctor',
  'wait_for_request',
] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

/** What goes with one call. */
export interface ToolCall {
  /** The caller has gone, or wants the answer no longer. */
  readonly signal: AbortSignal;
  /** Nobody hears it unless the caller asked for progress. */
  progress(done: number, total: number, text: string): void;
}

/** A tunnel as its host knows it: one that lives at an edge, or an entry of the log. */
export type ShownTunnel = EdgeTunnel | TunnelLogEntry;

export interface OpenTunnelInput {
  readonly protocol: 'http' | 'https' | 'tcp' | 'tls' | 'udp' | 'p2p';
  readonly local_port: number;
  readonly local_host?: string | undefined;
  readonly name?: string | undefined;
  readonly subdomain?: string | undefined;
  readonly domain?: string | undefined;
  readonly remote_port?: number | undefined;
  readonly host_header?: string | undefined;
  readonly p2p_name?: string | undefined;
  readonly p2p_service?: 'tcp' | 'udp' | undefined;
  readonly ttl_secs?: number | undefined;
}

export interface OpenedTunnel {
  readonly name: string;
  readonly tunnel_id: string;
  readonly protocol: string;
  readonly public_url: string;
  readonly local: string;
  readonly inspect_url: string | null;
  readonly warnings: readonly string[];
}

/** What a list needs of a request. */
export type RequestLine = Pick<CapturedRequest, 'id' | 'at' | 'method' | 'path' | 'status' | 'duration_ms'>;

/** Of requests that are waited for. */
export interface RequestFilter {
  readonly method?: string | undefined;
  readonly path_contains?: string | undefined;
}

/** Whom it concerns, and how much of it there may be; whatever the host leaves out is not known to it. */
export interface HostStatus {
  readonly [field: string]: unknown;
}

export interface ToolHost {
  /** The tools that exist here; nobody is told of others. Asked at every listing, and may not touch the network. */
  readonly tools: ReadonlySet<ToolName>;
  /** `state` left out: those that live. At most `limit`, newest first; `truncated`: there are more. */
  listTunnels(
    query: { readonly state: 'active' | 'ended'; readonly limit: number },
    call: ToolCall,
  ): Promise<{ readonly tunnels: readonly ShownTunnel[]; readonly truncated: boolean }>;
  /** By id, and where the host has names by name. TUNNEL_UNKNOWN, also when it is another account's. */
  getTunnel(tunnel: string, call: ToolCall): Promise<ShownTunnel>;
  closeTunnel(tunnel: string, call: ToolCall): Promise<{ readonly tunnel_id: string }>;
  /** All that are kept (the edge's bound), newest first, redacted. */
  listRequests(
    tunnel: string,
    call: ToolCall,
  ): Promise<{ readonly requests: readonly RequestLine[]; readonly truncated: boolean }>;
  /** CAPTURE_UNKNOWN when it is not kept (any more). */
  getRequest(tunnel: string, requestId: string, call: ToolCall): Promise<CapturedRequest>;
  replayRequest(
    tunnel: string,
    requestId: string,
    call: ToolCall,
  ): Promise<Pick<CapturedRequest, 'id' | 'status' | 'duration_ms'>>;
  /** The first that finishes from now on; null: none did within `withinMs`. Ends at once when the call does. */
  waitForRequest(
    tunnel: string,
    filter: RequestFilter,
    withinMs: number,
    call: ToolCall,
  ): Promise<CapturedRequest | null>;
  listPools(call: ToolCall): Promise<PlatformPools>;
  getStatus(call: ToolCall): Promise<HostStatus>;
  getUsage(days: number | undefined, call: ToolCall): Promise<HostUsage>;
  listKeys(call: ToolCall): Promise<readonly ApiToken[]>;
  /** Only where `tools` has it. */
  openTunnel?(input: OpenTunnelInput, call: ToolCall): Promise<OpenedTunnel>;
  /** Only where `tools` has it: the `--json` of `tunnel doctor`. */
  runDoctor?(call: ToolCall): Promise<Readonly<Record<string, unknown>>>;
}

export interface HostUsage {
  readonly summary: UsageSummary;
  /** By day, oldest first; as many as were asked for. */
  readonly days: readonly UsageChartPoint[];
}
