// Live tunnels of an account and their requests: from the platform with the user's sign-in, for all regions, or from one edge with the
// API key.
import {
  type CapturedRequest,
  collectCaptures,
  type EdgeTunnel,
  TUNNEL_LOG_LIMIT,
  type TunnelLogEntry,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Command } from 'commander';
import { loadConfig } from '../config/file.ts';
import { addServerFlags, FLAG_GROUPS, type ServerFlags } from '../config/flags.ts';
import { resolveProxy, resolveSettings } from '../config/settings.ts';
import type { Io } from '../io/io.ts';
import { CLI_LIMITS } from '../limits.ts';
import { apiAddress, type EdgeSource } from './edge-api.ts';
import { ACCOUNT_TUNNELS_MAX, EdgeTunnels } from './edge-tunnels.ts';
import { LoginFile } from './login-file.ts';
import { PlatformLogin } from './platform-login.ts';

/** Maximum tunnels queried for a request at the same time. */
const ACCOUNT_TUNNELS_ASKED_AT_ONCE = 8;

/** A live tunnel, reported by the platform or by an edge. A null field is unknown to the reporting side. */
export interface LiveTunnel {
  readonly tunnel_id: string;
  readonly name: string | null;
  readonly protocol: TunnelLogEntry['protocol'];
  readonly label: string;
  readonly public_url: string | null;
  /** Name of the computer that runs the client. */
  readonly client_name: string | null;
  readonly region_id: string | null;
  readonly request_count: number;
  readonly bytes_proxied: number;
  readonly connected_since: string;
}

export interface AccountTunnels {
  live(): Promise<LiveTunnel[]>;
  /** Returns the newest `most` captured requests, newest first. */
  requests(tunnelId: string, most: number): Promise<readonly CapturedRequest[]>;
  /** Replays a captured request. Resolves with the new request. */
  replay(tunnelId: string, requestId: string): Promise<CapturedRequest>;
  /** Closes a live tunnel. The client is notified, and does not open the tunnel again. */
  close(tunnelId: string): Promise<void>;
}

export interface AccountFlags extends ServerFlags {
  readonly api?: string;
}

export const addAccountFlags = (command: Command): Command =>
  addServerFlags(command)
    .optionsGroup(FLAG_GROUPS.connection)
    .option('--api <url>', 'REST API of one edge, with the API key (default: the platform, with your sign-in)');

/**
 * Chooses the source of live tunnels. A flag for an edge or an API key selects the edge. Otherwise the saved sign-in selects the
 * platform. Without a sign-in, the API key selects the edge.
 */
export const openAccountTunnels = (flags: AccountFlags, io: Io): AccountTunnels => {
  const isEdgeMeant = [flags.api, flags.server, flags.token, flags.tokenFile].some((flag) => flag !== undefined);
  if (!isEdgeMeant && new LoginFile(io).exists()) return ofPlatform(PlatformLogin.open(io, flags));
  return ofEdge(edgeSource(flags, io));
};

/**
 * Returns the settings for REST calls with the API key. `isNamed` is true if the address of the edge's REST API is configured. Otherwise
 * the API is expected on the host of the control plane.
 */
export const keyHolder = (flags: AccountFlags, io: Io) => {
  const config = loadConfig(flags.config, io);
  const { server, tls, token, caFile, insecure } = resolveSettings(flags, config, io);
  const api = flags.api ?? config?.values.api_url;
  const proxyFor = resolveProxy(flags.proxy, config, io);
  // `address` throws if the API key would be sent unencrypted.
  return {
    token,
    caFile,
    insecure,
    proxyFor,
    isNamed: api !== undefined,
    address: () => apiAddress({ api, server, tls }),
  };
};

export const edgeSource = (flags: AccountFlags, io: Io): EdgeSource => {
  const { isNamed: _, address, ...holder } = keyHolder(flags, io);
  return { ...holder, address: address() };
};

const ofPlatform = (login: PlatformLogin): AccountTunnels => ({
  live: () =>
    login.call(async (client) => {
      const found = new Map<string, TunnelLogEntry>();
      const { max: limit } = TUNNEL_LOG_LIMIT;
      // Tunnels that open or close during the loop shift the pages, so an entry can appear on two pages.
      for (let offset = 0; offset < ACCOUNT_TUNNELS_MAX; offset += limit) {
        const page = await client.tunnels({ state: 'active', limit, offset });
        for (const entry of page) found.set(entry.tunnel_id, entry);
        if (page.length < limit) break;
      }
      return [...found.values()].map(ofLog);
    }),
  requests: async (id, most) =>
    (await collectCaptures((query) => login.call((client) => client.requests(id, query)), most)).requests,
  replay: (id, request) => login.call((client) => client.replay(id, request), CLI_LIMITS.REPLAY_ANSWER_TIMEOUT_MS),
  close: (id) => login.call((client) => client.closeTunnel(id)),
});

const ofLog = (entry: TunnelLogEntry): LiveTunnel => ({
  tunnel_id: entry.tunnel_id,
  name: entry.name ?? null,
  protocol: entry.protocol,
  label: entry.label,
  public_url: entry.public_url ?? null,
  client_name: entry.client_name ?? null,
  region_id: entry.region_id,
  request_count: entry.request_count,
  bytes_proxied: entry.bytes_proxied,
  connected_since: entry.registered_at,
});

const ofEdge = (source: EdgeSource): AccountTunnels => {
  const edge = new EdgeTunnels(source);
  return {
    live: async () => (await edge.list()).map(ofRest),
    requests: async (id, most) => (await edge.requests(id, most)).requests,
    replay: (id, request) => edge.replay(id, request),
    close: (id) => edge.close(id),
  };
};

const ofRest = (tunnel: EdgeTunnel): LiveTunnel => ({
  tunnel_id: tunnel.tunnel_id,
  name: tunnel.name,
  protocol: tunnel.protocol,
  label: tunnel.label,
  public_url: tunnel.public_url,
  client_name: tunnel.client_name ?? null,
  region_id: tunnel.region_id,
  request_count: tunnel.request_count,
  bytes_proxied: tunnel.bytes_proxied,
  connected_since: tunnel.connected_since,
});

/**
 * Replays a request on the live tunnel that has captured the request. An error of another tunnel is reported only if no tunnel had the
 * request, because a replayed request must not look like a failure. An edge that does not respond may have the request, so its error is
 * kept while the remaining tunnels are tried.
 */
export const replayAnywhere = async (source: AccountTunnels, requestId: string): Promise<CapturedRequest> => {
  // An empty id, `.` or `..` would address another resource in a URL path.
  const isId = !/^\.{0,2}$/.test(requestId);
  const waiting = isId ? (await source.live()).filter(({ protocol }) => protocol === 'http') : [];
  let problem: Fault | null = null;
  const found: CapturedRequest[] = [];
  const askOn = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && found.length === 0; next = waiting.shift()) {
      try {
        found.push(await source.replay(next.tunnel_id, requestId));
      } catch (error) {
        const fault = Fault.from(error);
        if (NOT_HERE.has(fault.code)) continue;
        problem = fault;
        if (fault.code !== 'EDGE_AWAY') waiting.length = 0;
      }
    }
  };
  await Promise.all(Array.from({ length: ACCOUNT_TUNNELS_ASKED_AT_ONCE }, askOn));
  const [request] = found;
  if (request !== undefined) return request;
  throw problem ?? new Fault('CLIENT_REQUEST_UNKNOWN', { request: requestId });
};

/** Error codes of a tunnel without the request. The tunnel itself may have ended in the meantime. */
const NOT_HERE: ReadonlySet<string> = new Set(['CAPTURE_UNKNOWN', 'TUNNEL_UNKNOWN']);
