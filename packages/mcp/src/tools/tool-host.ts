// Backend of the tools: a client on this computer, or an account at the platform. Both reject invalid calls with a Fault, for different
// reasons.
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

/** Context of a tool call. */
export interface ToolCall {
  /** Aborts when the caller disconnects or cancels the call. */
  readonly signal: AbortSignal;
  /** Reports progress. Ignored unless the caller requested progress. */
  progress(done: number, total: number, text: string): void;
}

/** A tunnel as shown by a host: an open tunnel of an edge, or an entry of the platform's log. */
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

/** Summary of a captured request for lists. */
export type RequestLine = Pick<CapturedRequest, 'id' | 'at' | 'method' | 'path' | 'status' | 'duration_ms'>;

/** Conditions for the request that a call waits for. */
export interface RequestFilter {
  readonly method?: string | undefined;
  readonly path_contains?: string | undefined;
}

/** Status of the host: its account and limits. Fields unknown to the host are omitted. */
export interface HostStatus {
  readonly [field: string]: unknown;
}

export interface ToolHost {
  /** The tools of the host. Other tools are never mentioned to callers. Read for every listing, so the getter must not use the network. */
  readonly tools: ReadonlySet<ToolName>;
  /** Returns at most `limit` tunnels, newest first. `truncated` means that there are more tunnels. */
  listTunnels(
    query: { readonly state: 'active' | 'ended'; readonly limit: number },
    call: ToolCall,
  ): Promise<{ readonly tunnels: readonly ShownTunnel[]; readonly truncated: boolean }>;
  /**
   * Finds a tunnel by its id or, if the host has names, by its name. Rejects with TUNNEL_UNKNOWN, even if the tunnel exists but belongs
   * to a different account.
   */
  getTunnel(tunnel: string, call: ToolCall): Promise<ShownTunnel>;
  closeTunnel(tunnel: string, call: ToolCall): Promise<{ readonly tunnel_id: string }>;
  /** Returns all captured requests of a tunnel, up to the edge's limit, newest first. Secrets are redacted. */
  listRequests(
    tunnel: string,
    call: ToolCall,
  ): Promise<{ readonly requests: readonly RequestLine[]; readonly truncated: boolean }>;
  /** Returns a captured request. Rejects with CAPTURE_UNKNOWN if the request is not stored or no longer stored. */
  getRequest(tunnel: string, requestId: string, call: ToolCall): Promise<CapturedRequest>;
  replayRequest(
    tunnel: string,
    requestId: string,
    call: ToolCall,
  ): Promise<Pick<CapturedRequest, 'id' | 'status' | 'duration_ms'>>;
  /**
   * Waits for the first matching request that finishes after the call's start. Resolves with null after `withinMs`. Ends immediately when
   * the call is aborted.
   */
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
  /** Opens a tunnel. Defined only if `tools` has open_tunnel. */
  openTunnel?(input: OpenTunnelInput, call: ToolCall): Promise<OpenedTunnel>;
  /** Returns the output of `tunnel doctor --json`. Defined only if `tools` has run_doctor. */
  runDoctor?(call: ToolCall): Promise<Readonly<Record<string, unknown>>>;
}

export interface HostUsage {
  readonly summary: UsageSummary;
  /** Usage by day for the requested number of days, oldest first. */
  readonly days: readonly UsageChartPoint[];
}
