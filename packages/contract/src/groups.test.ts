import { expect, it } from 'vitest';
import { groupEvent, groupMemberSummary, groupSummary, healthEvent, healthEvents, lagged } from './groups.ts';

const member = {
  tunnel_id: 'tun_1',
  session_id: 'ses_1',
  name: 'web',
  public_url: 'http://web.localhost:8000',
  client_addr: '127.0.0.1:5000',
  client_name: 'laptop',
  request_count: 3,
  bytes_proxied: 4096,
  healthy: false,
  consecutive_failures: 3,
  total_health_failures: 5,
  last_failure_reason: 'status 500',
  connected_since: '2026-01-02T03:04:05.678Z',
  health_check_kind: 'http',
  has_alert_webhook: true,
  last_alert: { at: '2026-01-02T03:04:05.678Z', outcome: 'delivered' },
};

const group = {
  protocol: 'http',
  label: 'web',
  name: 'web pool',
  key_hash_short: '0123abcd',
  region_id: 'local',
  member_count: 1,
  healthy_count: 0,
  unhealthy_count: 1,
  total_dispatches: 7,
  total_health_failures: 5,
  members: [member],
};

it('a group and a member have exactly the fields of the specification and of the contract', () => {
  expect(Object.keys(groupMemberSummary.shape)).toEqual(Object.keys(member));
  expect(Object.keys(groupSummary.shape)).toEqual(Object.keys(group));
  expect(groupSummary.parse(group)).toEqual(group);
});

it('a group member reported by an older edge may have fewer fields', () => {
  const { name: _, public_url: _url, client_name: _client, last_failure_reason: _reason, ...older } = member;
  expect(groupMemberSummary.parse(older)).toEqual(older);
});

it('a group member without a probe has no health_check_kind; null or another word is refused', () => {
  const { health_check_kind: _, ...unprobed } = member;
  expect(groupMemberSummary.parse(unprobed)).toEqual(unprobed);
  for (const kind of [null, 'none', 'udp']) {
    expect(groupMemberSummary.safeParse({ ...member, health_check_kind: kind }).success).toBe(false);
  }
});

it('a group with protocol https, udp or p2p is refused', () => {
  for (const protocol of ['https', 'udp', 'p2p']) {
    expect(groupSummary.safeParse({ ...group, protocol }).success).toBe(false);
  }
});

it('a group event has exactly the fields of the contract', () => {
  const event = {
    protocol: 'tcp',
    label: '20000',
    group_name: 'db',
    region_id: 'local',
    tunnel_id: 'tun_1',
    healthy: true,
    reason: 'probe succeeded',
    healthy_count: 2,
    member_count: 3,
    at: '2026-01-02T03:04:05.678Z',
  };
  expect(Object.keys(groupEvent.shape)).toEqual(Object.keys(event));
  expect(groupEvent.parse(event)).toEqual(event);
});

it('a health event has a time, a state and a reason, and a list has at most 50 events', () => {
  const event = { at: '2026-01-02T03:04:05.678Z', healthy: false, reason: 'refused' };
  expect(Object.keys(healthEvent.shape)).toEqual(Object.keys(event));
  expect(healthEvents.safeParse(Array.from({ length: 50 }, () => event)).success).toBe(true);
  expect(healthEvents.safeParse(Array.from({ length: 51 }, () => event)).success).toBe(false);
});

it('a lagged event has missed at least one event', () => {
  expect(lagged.parse({ missed: 1 })).toEqual({ missed: 1 });
  expect(lagged.safeParse({ missed: 0 }).success).toBe(false);
});
