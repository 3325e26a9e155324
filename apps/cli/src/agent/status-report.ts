// What a running client says of itself, with the names and fields that `tunnel status --json` prints.
import { type ClientState, localText, protocolTraits, type TunnelSource, type TunnelSpec } from '@tunnel/client';
import { VERSION } from '../io.ts';
import { listenText } from '../output/peers.ts';
import { isTunnel, type RunningClient, type RunningTunnel, type RunningTunnelState } from '../running-client.ts';

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
  /** Both ways. */
  readonly bytes_proxied: number;
  readonly last_error: string | null;
}

export interface ClientStatus {
  readonly pid: number;
  readonly version: string;
  readonly since: string;
  /** Path of its config file; null: it has none. */
  readonly config: string | null;
  readonly server: string;
  readonly state: Exclude<ClientState, 'closed'>;
  readonly session_id: string | null;
  readonly region_id: string | null;
  readonly latency_ms: number | null;
  readonly carriers: number;
  /** Without its password; null: none is used. */
  readonly proxy: string | null;
  readonly log_file: string | null;
  readonly tunnels: readonly TunnelStatus[];
}

export const statusOf = (running: RunningClient, pid: number): ClientStatus => {
  const { plan, since, state, client } = running;
  const session = client?.session ?? null;
  return {
    pid,
    version: VERSION,
    since: new Date(since).toISOString(),
    config: plan.config,
    server: plan.settings.server,
    state,
    session_id: session?.id ?? null,
    region_id: session?.regionId ?? null,
    latency_ms: session?.latencyMs == null ? null : Math.round(session.latencyMs * 10) / 10,
    carriers: session?.carriers ?? 0,
    proxy: plan.settings.proxy?.text ?? null,
    log_file: plan.settings.logFile ?? null,
    tunnels: running.tunnels.map(tunnelStatus),
  };
};

const tunnelStatus = (entry: RunningTunnel): TunnelStatus => {
  const { name, source, state, lastError } = entry;
  const { tunnel_id, protocol, public_url, local, ...rest } = isTunnel(entry.wanted)
    ? publishedFields(entry, entry.wanted)
    : connectionFields(entry);
  const last_error = lastError?.message ?? null;
  return { name, tunnel_id, protocol, public_url, local, source, state, ...rest, last_error };
};

type Fields = Omit<TunnelStatus, 'name' | 'source' | 'state' | 'last_error'>;

/** Requests where they are known; else visitors: of other protocols each is one. */
const publishedFields = ({ tunnel }: RunningTunnel, wanted: TunnelSpec): Fields => {
  const { protocol, group = null } = wanted;
  const { requests = 0, connections = 0, bytesIn = 0, bytesOut = 0 } = tunnel?.counts ?? {};
  const health = tunnel?.health ?? 'none';
  return {
    tunnel_id: tunnel?.tunnelId || null,
    protocol,
    public_url: tunnel?.publicUrl || null,
    local: tunnel?.local ?? localText(wanted),
    group,
    healthy: health === 'none' || health === 'unknown' ? null : health === 'healthy',
    request_count: protocolTraits(protocol).carriesRequests ? requests : connections,
    bytes_proxied: bytesIn + bytesOut,
  };
};

const connectionFields = ({ connection, wanted }: RunningTunnel): Fields => {
  const { connections = 0, bytesIn = 0, bytesOut = 0 } = connection?.counts ?? {};
  const listen = connection?.listen ?? null;
  return {
    tunnel_id: null,
    protocol: 'p2p',
    public_url: `p2p://${wanted.p2pName}`,
    local: listen === null ? null : listenText(listen),
    group: null,
    healthy: null,
    request_count: connections,
    bytes_proxied: bytesIn + bytesOut,
  };
};
