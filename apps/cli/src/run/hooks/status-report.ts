// The status of a running client, as sent over its socket.
import { type ClientSpec, type ConnectPeerOptions, localText, protocolTraits } from '@tunnel/client';
import type { ClientStatus, TunnelStatus } from '../../agent/answers.ts';
import { VERSION } from '../../io/io.ts';
import { listenText } from '../../output/peers.ts';
import { isTunnel, type RunningClient, type RunningTunnel } from './running-client.ts';

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
    : connectionFields(entry, entry.wanted);
  const last_error = lastError?.message ?? null;
  return { name, tunnel_id, protocol, public_url, local, source, state, ...rest, last_error };
};

type Fields = Omit<TunnelStatus, 'name' | 'source' | 'state' | 'last_error'>;

/**
 * Returns the status fields of a published tunnel. `request_count` has requests for HTTP tunnels, and visitor connections for other
 * protocols.
 */
const publishedFields = ({ tunnel }: RunningTunnel, wanted: ClientSpec): Fields => {
  const { proto: protocol, group = null } = wanted;
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

const connectionFields = ({ connection }: RunningTunnel, { p2pName }: ConnectPeerOptions): Fields => {
  const { connections = 0, bytesIn = 0, bytesOut = 0 } = connection?.counts ?? {};
  const listen = connection?.listen ?? null;
  return {
    tunnel_id: null,
    protocol: 'p2p',
    public_url: `p2p://${p2pName}`,
    local: listen === null ? null : listenText(listen),
    group: null,
    healthy: null,
    request_count: connections,
    bytes_proxied: bytesIn + bytesOut,
  };
};
