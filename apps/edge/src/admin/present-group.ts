// Groups as the REST shows them: each viewer sees its own members, with counts and totals of them alone.
import { type GroupMemberSummary, type GroupProtocol, type GroupSummary, showProtocol } from '@tunnel/contract';
import type { Owner, TunnelGroup } from '@tunnel/core';
import type { Tunnel } from '../routing/tunnel.ts';
import { maySee } from './present-tunnel.ts';

/** The members that a viewer sees at one moment, each with its health bit at that moment. */
export interface GroupMoment {
  /** All but the members. */
  readonly head: Omit<GroupSummary, 'members'>;
  readonly members: readonly Tunnel[];
  readonly healthy: readonly boolean[];
}

/** Quick, whatever the size of the group: what takes long, the text of the members, can be made of it later. */
export const captureGroup = (group: TunnelGroup<Tunnel>, viewer: Owner, regionId: string): GroupMoment => {
  const members: Tunnel[] = [];
  for (const member of group.members()) if (maySee(viewer, member)) members.push(member);
  const { memberCount, healthyCount, totalDispatches, totalHealthFailures } = group.tally(viewer);
  const head = {
    protocol: showProtocol(group.protocol) as GroupProtocol,
    label: group.label,
    name: group.name,
    key_hash_short: group.keyHashShort,
    region_id: regionId,
    member_count: memberCount,
    healthy_count: healthyCount,
    unhealthy_count: memberCount - healthyCount,
    total_dispatches: totalDispatches,
    total_health_failures: totalHealthFailures,
  };
  return { head, members, healthy: members.map(({ health }) => health.healthy) };
};

export const presentMember = (member: Tunnel, healthy: boolean): GroupMemberSummary => {
  const { health } = member;
  return {
    tunnel_id: member.tunnelId,
    session_id: member.sessionId,
    client_addr: member.clientAddr,
    request_count: member.counters.requests,
    bytes_proxied: member.counters.bytes,
    healthy,
    consecutive_failures: health.consecutiveFailures,
    total_health_failures: health.totalFailures,
    connected_since: new Date(member.connectedSince).toISOString(),
    ...(health.kind === null ? {} : { health_check_kind: health.kind }),
    has_alert_webhook: member.alertWebhook !== null,
  };
};
