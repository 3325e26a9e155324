// Groups as the REST shows them: each viewer sees its own members, with counts and totals of them alone.
import { type GroupMemberSummary, type GroupProtocol, type GroupSummary, showProtocol } from '@tunnel/contract';
import type { GroupTally, Owner, TunnelGroup } from '@tunnel/core';
import type { Tunnel } from '../pool/tunnel.ts';
import { maySee } from './present-tunnel.ts';

const presentMember = (member: Tunnel): GroupMemberSummary => {
  const { health } = member;
  return {
    tunnel_id: member.tunnelId,
    session_id: member.sessionId,
    client_addr: member.clientAddr,
    request_count: member.counters.requests,
    bytes_proxied: member.counters.bytes,
    healthy: health.healthy,
    consecutive_failures: health.consecutiveFailures,
    total_health_failures: health.totalFailures,
    connected_since: new Date(member.connectedSince).toISOString(),
    ...(health.kind === null ? {} : { health_check_kind: health.kind }),
    has_alert_webhook: member.alertWebhook !== null,
  };
};

export const presentGroup = (group: TunnelGroup<Tunnel>, viewer: Owner, regionId: string): GroupSummary => {
  const members: GroupMemberSummary[] = [];
  for (const member of group.members()) if (maySee(viewer, member)) members.push(presentMember(member));
  const tally: GroupTally = group.tally(viewer);
  return {
    protocol: showProtocol(group.protocol) as GroupProtocol,
    label: group.label,
    name: group.name,
    key_hash_short: group.keyHashShort,
    region_id: regionId,
    member_count: tally.memberCount,
    healthy_count: tally.healthyCount,
    unhealthy_count: tally.memberCount - tally.healthyCount,
    total_dispatches: tally.totalDispatches,
    total_health_failures: tally.totalHealthFailures,
    members,
  };
};
