// The REST endpoints of load balancing: visible data for each caller, and hidden data.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fresh, GroupEdge, type Who } from './group-edge.fixture.ts';
import { join, startNamed } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const eventsPath = (protocol: string, label: string): string => `/api/groups/${protocol}/${label}/events`;

/** Returns the status of a request, and closes the body in case a stream was opened. */
const statusOf = async (path: string, who: Who): Promise<number> => {
  const answer = await edge.get(path, who);
  await answer.body?.cancel();
  return answer.status;
};

describe.concurrent('Edge REST surfaces', () => {
  it(row('Edge REST surfaces', 1), async ({ harness }) => {
    const hers = fresh();
    const his = fresh();
    const both = fresh();
    const alice = await RawControl.enter(harness, edge, 'alice');
    const bob = await RawControl.enter(harness, edge, 'bob');
    for (const group of [hers, both]) await alice.join(memberRequest(group));
    for (const group of [his, both]) await bob.join(memberRequest(group));
    const seen = async (who: Who): Promise<string[]> => {
      const names = (await edge.groups(who)).map(({ name }) => name);
      return [hers, his, both].filter((name) => names.includes(name));
    };
    expect(await seen('alice')).toEqual([hers, both]);
    expect(await seen('bob')).toEqual([his, both]);
    expect(await seen('admin')).toEqual([hers, his, both]);
  });

  it(row('Edge REST surfaces', 2), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(fresh()));
    expect(await edge.healthEvents(member.tunnel_id)).toEqual([]);
    await raw.unhealthy(member, 'never was healthy');
    await raw.healthy(member);
    await raw.healthy(member);
    await raw.unhealthy(member, 'connection refused');
    await raw.unhealthy(member, 'still refused');
    await raw.healthy(member);
    const events = await edge.healthEvents(member.tunnel_id);
    expect(events.map(({ healthy }) => healthy)).toEqual([true, false, true]);
    expect(events[1]?.reason).toBe('connection refused');
    const times = events.map(({ at }) => Date.parse(at));
    expect([...times].sort((a, b) => a - b)).toEqual(times);
    for (const event of events) expect(Object.keys(event).sort()).toEqual(['at', 'healthy', 'reason']);
  });

  it(row('Edge REST surfaces', 3), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const one = await raw.join(memberRequest(group));
    const two = await raw.join(memberRequest(group));
    const elsewhere = await raw.join(memberRequest(fresh()));
    const feed = await edge.feed(harness, 'http', group);
    expect(feed.type).toMatch(/^text\/event-stream/);
    for (const member of [one, two, elsewhere]) await raw.healthy(member);
    await raw.healthy(one);
    await raw.unhealthy(two);
    await raw.unhealthy(two);
    await raw.healthy(two);
    await feed.until(4);
    expect(feed.changes).toEqual([
      [one.tunnel_id, true],
      [two.tunnel_id, true],
      [two.tunnel_id, false],
      [two.tunnel_id, true],
    ]);
  });

  it(row('Edge REST surfaces', 3, 'tcp'), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(fresh(), { protocol: 'tcp' }));
    const feed = await edge.feed(harness, 'tcp', member.label, 'alice');
    await raw.healthy(member);
    expect(await feed.until(1)).toMatchObject([{ protocol: 'tcp', label: String(member.assigned_port) }]);
    expect(await statusOf(eventsPath('http', member.label), 'admin')).toBe(404);
  });

  it(row('Edge REST surfaces', 4), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(fresh()));
    const paths = [
      '/api/tunnels',
      '/api/groups',
      `/api/tunnels/${member.tunnel_id}/health-events`,
      eventsPath('http', member.label),
    ];
    const url = edge.stack.run.api_url;
    for (const path of paths) {
      const without = await fetch(`${url}${path}`);
      expect([path, without.status]).toEqual([path, 401]);
      expect([path, (await edge.stack.api(path, { token: 'wrong' })).status]).toEqual([path, 401]);
      for (const who of ['admin', 'alice'] as const) expect([path, await statusOf(path, who)]).toEqual([path, 200]);
    }
  });

  it(row('Edge REST surfaces', 5), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const hers = await join(harness, edge, { group, localPort: service.port });
    const his = await join(harness, edge, { group, localPort: service.port }, { who: 'bob' });
    const bob = await RawControl.enter(harness, edge, 'bob');
    const down = await bob.join(memberRequest(group));
    await bob.unhealthy(down);
    const endpoint = endpointOf(hers.tunnel.publicUrl);
    for (let asked = 0; asked < 20; asked += 1) await askHttp(endpoint);
    await eventually(async () => {
      const [all, alices, bobs] = await Promise.all([
        edge.group(group),
        edge.group(group, 'alice'),
        edge.group(group, 'bob'),
      ]);
      expect(all).toMatchObject({ member_count: 3, healthy_count: 2, total_dispatches: 20, total_health_failures: 1 });
      expect(alices).toMatchObject({ member_count: 1, healthy_count: 1, unhealthy_count: 0, total_health_failures: 0 });
      expect(bobs).toMatchObject({ member_count: 2, healthy_count: 1, unhealthy_count: 1, total_health_failures: 1 });
      expect(alices.members.map(({ tunnel_id }) => tunnel_id)).toEqual([hers.tunnel.tunnelId]);
      expect(bobs.members.map(({ tunnel_id }) => tunnel_id)).toEqual([his.tunnel.tunnelId, down.tunnel_id]);
      // Each tenant's view counts the dispatches to that tenant's members. Together the views count all visits.
      expect(alices.total_dispatches).toBe(alices.members[0]?.request_count);
      expect(alices.total_dispatches + bobs.total_dispatches).toBe(20);
    });
  });

  it(row('Edge REST surfaces', 5, 'events'), async ({ harness }) => {
    const group = fresh();
    const alice = await RawControl.enter(harness, edge, 'alice');
    const bob = await RawControl.enter(harness, edge, 'bob');
    const hers = await alice.join(memberRequest(group));
    const his = await bob.join(memberRequest(group));
    const feed = await edge.feed(harness, 'http', group, 'alice');
    const all = await edge.feed(harness, 'http', group);
    await bob.healthy(his);
    await alice.healthy(hers);
    await bob.unhealthy(his);
    await alice.unhealthy(hers);
    await all.until(4);
    await feed.until(2);
    expect(feed.changes).toEqual([
      [hers.tunnel_id, true],
      [hers.tunnel_id, false],
    ]);
    expect(feed.groupEvents[0]).toMatchObject({ member_count: 1, healthy_count: 1 });
    expect(all.groupEvents[1]).toMatchObject({ member_count: 2, healthy_count: 2 });
  });

  it(row('Edge REST surfaces', 6), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge, 'alice');
    const member = await raw.join(memberRequest(fresh()));
    const paths = [eventsPath('http', member.label), `/api/tunnels/${member.tunnel_id}/health-events`];
    for (const path of paths) {
      const foreign = await edge.get(path, 'bob');
      const missing = await edge.get(path.replace(/tun_\w+|pool-\d+/, 'nothing'), 'bob');
      // A hidden group and a missing group get the same answer.
      expect([foreign.status, missing.status]).toEqual([404, 404]);
      const hidden = (await foreign.json()) as object;
      const absent = (await missing.json()) as object;
      expect({ ...hidden, request_id: '' }).toEqual({ ...absent, request_id: '' });
      expect(await statusOf(path, 'admin')).toBe(200);
    }
  });
});

describe.concurrent('Errors', () => {
  it(row('Errors', 5), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge, 'bob');
    const web = await raw.join(memberRequest(fresh()));
    const db = await raw.join(memberRequest(fresh(), { protocol: 'tcp' }));
    expect(await statusOf(eventsPath('http', web.label), 'alice')).toBe(404);
    expect(await statusOf(eventsPath('tcp', db.label), 'alice')).toBe(404);
    expect(await statusOf(eventsPath('http', web.label), 'bob')).toBe(200);
  });
});
