// A living tunnel as the REST shows it, and to whom.
import { type EdgeTunnel, showProtocol } from '@tunnel/contract';
import { type Owner, sameOwner } from '@tunnel/core';
import type { Tunnel } from '../routing/tunnel.ts';

/** The operator sees everything, an account its own, whichever of its keys asks. */
export const maySee = (caller: Owner, tunnel: Pick<Tunnel, 'owner'>): boolean =>
  caller.kind === 'operator' || sameOwner(caller, tunnel.owner);

export const presentTunnel = (tunnel: Tunnel, regionId: string): EdgeTunnel => ({
  tunnel_id: tunnel.tunnelId,
  session_id: tunnel.sessionId,
  name: tunnel.name,
  protocol: showProtocol(tunnel.protocol),
  label: tunnel.label,
  public_url: tunnel.publicUrl,
  assigned_port: tunnel.assignedPort,
  group: tunnel.group?.name ?? null,
  healthy: tunnel.health.healthy,
  client_addr: tunnel.clientAddr,
  region_id: regionId,
  request_count: tunnel.counters.requests,
  bytes_proxied: tunnel.counters.bytes,
  connected_since: new Date(tunnel.connectedSince).toISOString(),
});
