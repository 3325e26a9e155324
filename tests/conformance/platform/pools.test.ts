// Groups of an account as the platform reports them: each field of a group with known activity, and the visibility of groups.
import { createHash } from 'node:crypto';
import type { Tunnel } from '@tunnel/client';
import { type GroupMemberSummary, type GroupSummary, groupMemberSummary, platformPools } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, type Person, PlatformHarness, REGION } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { openTunnel, startService, visitHttp } from './tunnels.fixture.ts';

const NAME = 'Orders of today';
const LABEL = 'orders-of-today';
const KEY = 'clé partagée';
const HOOK = 'http://127.0.0.1:9/hook?secret=SECRET';
const MEMBER = { subdomain: LABEL, group: NAME, groupKey: KEY } as const;

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
let probed: Tunnel;
let plain: Tunnel;
let group: GroupSummary;
let serviceIsUp = true;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
  const localPort = await startService(harness, (request, response) => {
    response.writeHead(request.url === '/healthz' && !serviceIsUp ? 503 : 200).end('hello');
  });
  const healthCheck = { type: 'http', path: '/healthz', intervalSecs: 0.2, timeoutSecs: 2, maxFailed: 2 } as const;
  const sick = await openTunnel(harness, ann, {
    ...MEMBER,
    localPort,
    healthCheck: { ...healthCheck, alertWebhook: HOOK },
  });
  probed = sick.tunnel;
  await groupWhen(({ healthy_count }) => healthy_count === 1);
  await visitHttp(probed);
  serviceIsUp = false;
  await groupWhen(({ healthy_count, members }) => healthy_count === 0 && members[0]?.request_count === 1);
  plain = (await openTunnel(harness, ann, { ...MEMBER, localPort })).tunnel;
  await visitHttp(plain);
  await openTunnel(harness, bob, { ...MEMBER, localPort });
  group = await groupWhen(({ members, member_count }) => member_count === 2 && members[1]?.request_count === 1);
});

const groupsOf = async ({ token }: Person) =>
  platformPools.strict().parse((await harness.get('/load-balancing/groups', token)).body).groups;
const groupWhen = (isSo: (group: GroupSummary) => boolean): Promise<GroupSummary> =>
  eventually(
    async () => {
      const [found] = await groupsOf(ann);
      if (found === undefined || !isSo(found)) throw new Error(`not yet: ${JSON.stringify(found)}`);
      return found;
    },
    { timeoutMs: PATIENCE_MS },
  );
const memberOf = ({ tunnelId }: Tunnel): GroupMemberSummary => {
  const found = group.members.find(({ tunnel_id }) => tunnel_id === tunnelId);
  if (found === undefined) throw new Error(`${tunnelId} is not listed`);
  return found;
};

describe('GroupSummary', () => {
  it(row('GroupSummary', 1), () => expect(group.protocol).toBe('http'));
  it(row('GroupSummary', 2), () => expect(group.label).toBe(LABEL));
  it(row('GroupSummary', 3), () => expect(group.name).toBe(NAME));
  it(row('GroupSummary', 4), () => {
    expect(group.key_hash_short).toBe(createHash('sha256').update(KEY).digest('hex').slice(0, 8));
  });
  it(row('GroupSummary', 5), () => expect(group.region_id).toBe(REGION));
  it(row('GroupSummary', 6), () => expect(group.member_count).toBe(2));
  it(row('GroupSummary', 7), () => expect(group.healthy_count).toBe(1));
  it(row('GroupSummary', 8), () => expect(group.unhealthy_count).toBe(1));
  it(row('GroupSummary', 9), () => expect(group.total_dispatches).toBe(2));
  it(row('GroupSummary', 10), () => expect(group.total_health_failures).toBe(1));
  it(row('GroupSummary', 11), () => {
    expect(group.members.map(({ tunnel_id }) => tunnel_id)).toEqual([probed.tunnelId, plain.tunnelId]);
  });
});

describe('GroupMemberSummary', () => {
  const both = () => [memberOf(probed), memberOf(plain)] as const;
  it(row('GroupMemberSummary', 1), () => {
    expect(both().map((member) => member.tunnel_id)).toEqual([probed.tunnelId, plain.tunnelId]);
  });
  it(row('GroupMemberSummary', 2), () => {
    expect(new Set(both().map((member) => member.session_id)).size).toBe(2);
  });
  it(row('GroupMemberSummary', 3), () => expect(memberOf(plain).client_addr).toMatch(/^127\.0\.0\.1(:\d+)?$/));
  it(row('GroupMemberSummary', 4), () => expect(both().map((member) => member.request_count)).toEqual([1, 1]));
  it(row('GroupMemberSummary', 5), () => {
    expect(both().every((member) => Number.isSafeInteger(member.bytes_proxied) && member.bytes_proxied > 0)).toBe(true);
  });
  it(row('GroupMemberSummary', 6), () => expect(both().map((member) => member.healthy)).toEqual([false, true]));
  it(row('GroupMemberSummary', 7), () => {
    expect(memberOf(probed).consecutive_failures).toBeGreaterThanOrEqual(2);
    expect(memberOf(plain).consecutive_failures).toBe(0);
  });
  it(row('GroupMemberSummary', 8), () => {
    expect(both().map((member) => member.total_health_failures)).toEqual([1, 0]);
  });
  it(row('GroupMemberSummary', 9), () => {
    for (const { connected_since: since } of both()) expect(since).toBe(new Date(since).toISOString());
  });
  it(row('GroupMemberSummary', 10), () => {
    expect(memberOf(probed).health_check_kind).toBe('http');
    expect(memberOf(plain)).not.toHaveProperty('health_check_kind');
  });
  it(row('GroupMemberSummary', 11), () => {
    expect(both().map((member) => member.has_alert_webhook)).toEqual([true, false]);
  });
  it(row('GroupMemberSummary', 12), async () => {
    expect((await harness.get('/load-balancing/groups', ann.token)).text).not.toMatch(/SECRET|hook\?/);
    for (const member of both()) groupMemberSummary.strict().parse(member);
  });
});

describe('Load balancing', () => {
  it(row('Load balancing', 1), async () => {
    const answer = await harness.get('/load-balancing/groups', ann.token);
    expect([answer.status, Object.keys(answer.body as object).sort()]).toEqual([200, ['groups', 'warnings']]);
    expect(answer.body).toMatchObject({ warnings: [] });
    expect(refusalOf(await harness.get('/load-balancing/groups'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    // Bob sees the same group with only his member.
    const [his] = await groupsOf(bob);
    expect(his).toMatchObject({ label: LABEL, member_count: 1, total_health_failures: 0 });
    expect(his?.members.map(({ tunnel_id }) => tunnel_id)).not.toContain(plain.tunnelId);
    expect(await groupsOf(await harness.person())).toEqual([]);
  });

  it(row('Load balancing', 1, 'a solo tunnel is no pool; a tcp pool has its port as label'), async () => {
    const cyd = await harness.person();
    await openTunnel(harness, cyd);
    const { tunnel } = await openTunnel(harness, cyd, { protocol: 'tcp', group: 'db', groupKey: 'k', localPort: 9 });
    const groups = await groupsOf(cyd);
    expect(groups.map(({ protocol, label }) => [protocol, label])).toEqual([['tcp', String(tunnel.assignedPort)]]);
  });

  it(row('Contract', 27), async () => {
    const dan = await harness.person();
    const edge_id = await harness.edgeAt('http://127.0.0.1:9', 'far-away');
    const answer = await harness.get('/load-balancing/groups', ann.token);
    expect(answer.status).toBe(200);
    const { groups, warnings } = platformPools.parse(answer.body);
    expect([groups.length, warnings.length]).toEqual([1, 1]);
    expect(warnings[0]).toContain('far-away');
    const quiet = { last_heartbeat_at: new Date(Date.now() - 61_000) };
    await harness.db.updateTable('edges').set(quiet).where('id', '=', edge_id).execute();
    expect((await harness.get('/load-balancing/groups', dan.token)).body).toEqual({ groups: [], warnings: [] });
    // The edge has been silent for a long time, but still has an open tunnel of the account.
    const open = { user_id: dan.id, edge_id, tunnel_id: 'tun_far', protocol: 'http', region_id: 'far-away' };
    await harness.db
      .insertInto('tunnel_log')
      .values({ ...open, registered_at: new Date() })
      .execute();
    const his = platformPools.parse((await harness.get('/load-balancing/groups', dan.token)).body);
    expect([his.groups, his.warnings]).toEqual([[], [expect.stringContaining('far-away')]]);
  });

  it(row('Authentication', 8), async () => {
    const rows = await Promise.all(
      (['tunnel_log', 'edges', 'edge_journals', 'audit_log'] as const).map((table) =>
        harness.db.selectFrom(table).selectAll().execute(),
      ),
    );
    expect(JSON.stringify([rows, await groupsOf(ann)])).not.toContain(KEY);
  });
});
