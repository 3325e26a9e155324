// Groups and members for tests.
import type { GroupMemberSummary, GroupSummary } from '@tunnel/contract';

export const makeMember = (some: Partial<GroupMemberSummary> = {}): GroupMemberSummary => ({
  tunnel_id: 'tun_a',
  session_id: 'ses_a',
  client_addr: '203.0.113.7:50123',
  request_count: 0,
  bytes_proxied: 0,
  healthy: true,
  consecutive_failures: 0,
  total_health_failures: 0,
  connected_since: '2030-01-01T00:00:00.000Z',
  has_alert_webhook: false,
  ...some,
});

export const makePool = (some: Partial<GroupSummary> = {}): GroupSummary => {
  const members = some.members ?? [makeMember()];
  const healthy = members.filter((member) => member.healthy).length;
  return {
    protocol: 'http',
    label: 'shop',
    name: 'shop',
    key_hash_short: '0a1b2c3d',
    region_id: 'local',
    member_count: members.length,
    healthy_count: healthy,
    unhealthy_count: members.length - healthy,
    total_dispatches: 0,
    total_health_failures: 0,
    members,
    ...some,
  };
};
