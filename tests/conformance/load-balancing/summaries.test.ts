// GroupSummary and GroupMemberSummary, field by field, for a group with known activity.
import { Agent } from 'node:http';
import { type GroupMemberSummary, type GroupSummary, groupMemberSummary } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { Harness } from '../../system/in-process.fixture.ts';
import { GroupEdge, REGION, sha256 } from './group-edge.fixture.ts';
import { join, type Member, OFTEN, startNamed, untilHealthy } from './members.fixture.ts';
import { memberRequest, RawControl, type Registered } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const NAME = 'Orders of today';
const KEY = 'clé partagée';
const HOOK = 'http://127.0.0.1:9/hook-of-alice?secret=SECRET';
const FIELDS = 'protocol label name key_hash_short region_id member_count healthy_count unhealthy_count';
const MEMBER_FIELDS = 'tunnel_id session_id client_addr request_count bytes_proxied healthy consecutive_failures';

const harness = new Harness();
let edge: GroupEdge;
let real: Member;
let probed: Registered;
let plain: Registered;
let group: GroupSummary;
let before: number;

beforeAll(async () => {
  edge = await GroupEdge.start(harness);
  before = Date.now();
  const service = await startNamed(harness, 'x'.repeat(1000));
  const healthCheck = { ...OFTEN, alertWebhook: HOOK };
  const spec = { subdomain: 'orders', group: NAME, groupKey: KEY, localPort: service.port, healthCheck };
  real = await join(harness, edge, spec);
  const raw = await RawControl.enter(harness, edge);
  probed = await raw.join(memberRequest('another name', { subdomain: 'orders', key: KEY }));
  await raw.healthy(probed);
  await raw.unhealthy(probed, 'refused', 3);
  await raw.unhealthy(probed, 'refused', 4);
  plain = await raw.join({ protocol: 'http', subdomain: 'orders', group: NAME, group_key_hash: sha256(KEY) });
  await untilHealthy(edge, NAME, 2);
  await visitThreeTimes();
  await eventually(async () => {
    group = await edge.group(NAME);
    expect(group.total_dispatches).toBe(3);
    expect(memberOf(real.tunnel.tunnelId).request_count).toBe(5);
  });
});
afterAll(() => harness.close());

/** Sends five requests on three connections. */
const visitThreeTimes = async (): Promise<void> => {
  const endpoint = endpointOf(real.tunnel.publicUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let asked = 0; asked < 3; asked += 1) await askHttp(endpoint, { agent });
  agent.destroy();
  await askHttp(endpoint);
  await askHttp(endpoint);
};

const memberOf = (tunnelId: string): GroupMemberSummary => {
  const found = group.members.find((member) => member.tunnel_id === tunnelId);
  if (found === undefined) throw new Error(`${tunnelId} is not listed`);
  return found;
};
const realMember = () => memberOf(real.tunnel.tunnelId);
const probedMember = () => memberOf(probed.tunnel_id);
const plainMember = () => memberOf(plain.tunnel_id);

it(row('GroupSummary', 1), () => expect(group.protocol).toBe('http'));
it(row('GroupSummary', 2), () => expect(group.label).toBe('orders'));
it(row('GroupSummary', 3), () => expect(group.name).toBe(NAME));
it(row('GroupSummary', 4), () => expect(group.key_hash_short).toBe(sha256(KEY).slice(0, 8)));
it(row('GroupSummary', 5), () => expect(group.region_id).toBe(REGION));
it(row('GroupSummary', 6), () => expect(group.member_count).toBe(3));
it(row('GroupSummary', 7), () => expect(group.healthy_count).toBe(2));
it(row('GroupSummary', 8), () => expect(group.unhealthy_count).toBe(1));
it(row('GroupSummary', 9), () => expect(group.total_dispatches).toBe(3));
it(row('GroupSummary', 10), () => expect(group.total_health_failures).toBe(2));
it(row('GroupSummary', 11), () => {
  expect(Object.keys(group).sort()).toEqual(
    [...FIELDS.split(' '), 'total_dispatches', 'total_health_failures', 'members'].sort(),
  );
  expect(group.members.map(({ tunnel_id }) => tunnel_id)).toEqual([
    real.tunnel.tunnelId,
    probed.tunnel_id,
    plain.tunnel_id,
  ]);
});

it(row('GroupMemberSummary', 1), () => expect(realMember().tunnel_id).toBe(real.tunnel.tunnelId));
it(row('GroupMemberSummary', 2), async () => {
  const rows = await edge.stack.tunnels();
  expect(realMember().session_id).toBe(rows.find(({ tunnel_id }) => tunnel_id === realMember().tunnel_id)?.session_id);
  // The group has two tunnels of the same client and a tunnel of a different client.
  expect(probedMember().session_id).toBe(plainMember().session_id);
  expect(realMember().session_id).not.toBe(plainMember().session_id);
});
it(row('GroupMemberSummary', 3), () => expect(realMember().client_addr).toMatch(/^127\.0\.0\.1:\d+$/));
it(row('GroupMemberSummary', 4), () => {
  expect(realMember().request_count).toBe(5);
  expect(probedMember().request_count).toBe(0);
});
it(row('GroupMemberSummary', 5), () => {
  // Five bodies of 1,000 bytes, plus the heads.
  expect(realMember().bytes_proxied).toBeGreaterThan(5 * 1000);
  expect(realMember().bytes_proxied).toBeLessThan(5 * 2000);
  expect(plainMember().bytes_proxied).toBe(0);
});
it(row('GroupMemberSummary', 6), () => {
  expect([realMember(), probedMember(), plainMember()].map(({ healthy }) => healthy)).toEqual([true, false, true]);
});
it(row('GroupMemberSummary', 7), () => {
  expect(probedMember().consecutive_failures).toBe(4);
  expect(realMember().consecutive_failures).toBe(0);
});
it(row('GroupMemberSummary', 8), () => {
  expect(probedMember().total_health_failures).toBe(2);
  expect(realMember().total_health_failures).toBe(0);
});
it(row('GroupMemberSummary', 9), () => {
  const since = Date.parse(realMember().connected_since);
  expect(since).toBeGreaterThanOrEqual(before);
  expect(since).toBeLessThanOrEqual(Date.now());
  expect(realMember().connected_since).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
});
it(row('GroupMemberSummary', 10), () => {
  expect(realMember().health_check_kind).toBe('http');
  expect(probedMember().health_check_kind).toBe('tcp');
  expect(plainMember()).not.toHaveProperty('health_check_kind');
});
it(row('GroupMemberSummary', 11), () => {
  expect(realMember().has_alert_webhook).toBe(true);
  expect(plainMember().has_alert_webhook).toBe(false);
  const required = [...MEMBER_FIELDS.split(' '), 'total_health_failures', 'connected_since', 'has_alert_webhook'];
  // The fields of a member without failures and without a computer name, including our additions to the specification.
  const ours = ['name', 'public_url'];
  expect(Object.keys(plainMember()).sort()).toEqual([...required, ...ours].sort());
  for (const member of group.members) groupMemberSummary.parse(member);
});
it(row('GroupMemberSummary', 12), async () => {
  const id = real.tunnel.tunnelId;
  const paths = ['groups', 'tunnels', `tunnels/${id}`, `tunnels/${id}/health-events`, `tunnels/${id}/requests`];
  for (const path of paths) {
    for (const who of ['admin', 'alice'] as const) {
      const text = await (await edge.get(`/api/${path}`, who)).text();
      expect(text).toContain(path === 'groups' ? 'has_alert_webhook' : '');
      expect(text).not.toMatch(/hook-of-alice|SECRET/);
    }
  }
});
