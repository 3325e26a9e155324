// Contract rows about clients that are lost, resume, or close on purpose.
import { connect } from '@tunnel/client';
import { eventually, startRelay } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fateOf } from '../../system/visitor.fixture.ts';
import { configLines, startFile } from './config-file.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { greetingAt, join, namesAt, OFTEN, startNamed, startNamedTcp, untilHealthy } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const tcp = (group: string) => memberRequest(group, { protocol: 'tcp' });

describe.concurrent('Contract', () => {
  it(row('Contract', 1), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const raw = await RawControl.enter(harness, edge);
    const named = await raw.join(memberRequest(web));
    const numbered = await raw.join(tcp(db));
    await raw.cut();
    const other = await RawControl.enter(harness, edge, 'bob');
    await eventually(async () => {
      const ids = (await edge.stack.tunnels()).map(({ tunnel_id }) => tunnel_id);
      expect(ids).not.toContain(named.tunnel_id);
      expect(ids).not.toContain(numbered.tunnel_id);
    });
    expect([await edge.findGroup(web), await edge.findGroup(db)]).toEqual([undefined, undefined]);
    // Nothing is held for the group: every account can take the port at once, and the name is available to its account for any kind of
    // tunnel.
    expect((await askHttp(endpointOf(named.public_url))).status).toBe(404);
    const asked = { protocol: 'http', subdomain: web } as const;
    expect((await other.refusal(asked)).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await (await RawControl.enter(harness, edge, 'alice-2')).join(asked);
    await eventually(() => other.join({ protocol: 'tcp', remote_port: numbered.assigned_port }));
  });

  it(row('Contract', 1, 'others remain'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: service.port });
    const raw = await RawControl.enter(harness, edge);
    const lost = await raw.join(memberRequest(group));
    await raw.healthy(lost);
    await untilHealthy(edge, group, 2);
    await raw.cut();
    await eventually(async () => expect((await edge.group(group)).member_count).toBe(1));
    expect(await namesAt(tunnel, 5)).toEqual(Array(5).fill(service.name));
  });

  it(row('Contract', 2), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const raw = await RawControl.enter(harness, edge);
    const staying = await RawControl.enter(harness, edge);
    const named = await raw.join(memberRequest(web));
    const numbered = await raw.join(tcp(db));
    await staying.join(memberRequest(web));
    await raw.healthy(named);
    await raw.cut();
    await eventually(async () => expect((await edge.group(web)).member_count).toBe(1));
    await eventually(async () => expect(await edge.findGroup(db)).toBeUndefined());
    const back = await RawControl.enter(harness, edge, 'alice', raw.secret);
    expect(back.of('AuthOk')).toMatchObject([{ resumed: true, session_id: raw.secret.session_id }]);
    const again = [
      await back.join(memberRequest(web, { tunnel_id: named.tunnel_id })),
      await back.join(memberRequest(db, { protocol: 'tcp', tunnel_id: numbered.tunnel_id })),
    ];
    expect(again.map(({ tunnel_id }) => tunnel_id)).toEqual([named.tunnel_id, numbered.tunnel_id]);
    // The resumed members return: the first to the existing group, unhealthy until it reports; the second to a new group as its first
    // member.
    const { members } = await edge.group(web);
    expect(members.find(({ tunnel_id }) => tunnel_id === named.tunnel_id)).toMatchObject({ healthy: false });
    expect((await edge.group(db)).member_count).toBe(1);
    expect(await back.heard('Registered')).toMatchObject({ tunnel_id: numbered.tunnel_id });
    // The resume secret is not sufficient: the API key must belong to the same account.
    const thief = await RawControl.enter(harness, edge, 'bob', back.secret);
    expect(thief.of('AuthOk')).toMatchObject([{ resumed: false }]);
  });

  it(row('Contract', 2, 'the real client'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const relay = harness.use(await startRelay({ target: { port: edge.stack.controlPort } }));
    const client = await connect({ server: `127.0.0.1:${relay.port}`, token: edge.token('alice') });
    harness.use({ close: () => client.close() });
    const spec = { protocol: 'http', group, groupKey: 'key', localPort: service.port, healthCheck: OFTEN } as const;
    const tunnel = await client.open(spec);
    await untilHealthy(edge, group, 1);
    const { tunnelId, publicUrl } = tunnel;
    relay.resetAll();
    await eventually(() => expect(tunnel.state).toBe('away'));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect([tunnel.tunnelId, tunnel.publicUrl]).toEqual([tunnelId, publicUrl]);
    // The client reports the member as healthy again after the resume.
    await untilHealthy(edge, group, 1);
    expect(await namesAt(tunnel, 3)).toEqual(Array(3).fill(service.name));
  });

  it(row('Contract', 2, 'a restart after kill -9'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const home = await harness.folder();
    const health_check = { type: 'http', path: '/healthz', interval_secs: 0.2 };
    const entry = { proto: 'http', local_port: service.port, group, group_key: 'key', health_check };
    const text = configLines(edge.server, edge.token('alice'), { web: entry });
    // The client needs a separate process, because a running process would keep the lock on its state.
    const first = await startFile(harness, text, { home, programs: true });
    const { tunnel_id } = await first.ready();
    await untilHealthy(edge, group, 1);
    await first.kill();
    await eventually(async () => expect(await edge.findGroup(group)).toBeUndefined());
    const second = await startFile(harness, text, { home });
    expect((await second.ready()).tunnel_id).toBe(tunnel_id);
    await untilHealthy(edge, group, 1);
    // A second process with the same file is a separate member.
    const third = await startFile(harness, text, { home });
    expect((await third.ready()).tunnel_id).not.toBe(tunnel_id);
    await untilHealthy(edge, group, 2);
  });

  it(row('Contract', 3), async ({ harness }) => {
    const group = fresh();
    const receiver = await WebhookReceiver.start(harness);
    const health_check = { type: 'tcp', alert_webhook: receiver.url() } as const;
    const old = await RawControl.enter(harness, edge);
    const member = await old.join(memberRequest(group, { health_check }));
    await old.healthy(member);
    const feed = await edge.feed(harness, 'http', group);
    const before = await edge.group(group);
    const next = await RawControl.enter(harness, edge, 'alice', old.secret);
    expect(next.of('AuthOk')).toMatchObject([{ resumed: true }]);
    expect((await edge.group(group)).healthy_count).toBe(1);
    const again = await next.join(memberRequest(group, { health_check, tunnel_id: member.tunnel_id }));
    expect(again).toMatchObject({ tunnel_id: member.tunnel_id, public_url: member.public_url });
    const after = await edge.group(group);
    expect(after.members).toMatchObject([{ tunnel_id: member.tunnel_id, healthy: true }]);
    expect(after.members[0]?.connected_since).toBe(before.members[0]?.connected_since);
    expect(feed.ended).toBe(false);
    // The resume produces no event: the next health report is the first.
    await next.unhealthy(member, 'now');
    expect(await feed.until(1)).toMatchObject([{ healthy: false, reason: 'now' }]);
    expect(await receiver.until(group, 1)).toHaveLength(1);
    expect(await edge.healthEvents(member.tunnel_id)).toHaveLength(2);
  });

  it(row('Contract', 3, 'the real client'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const relay = harness.use(await startRelay({ target: { port: edge.stack.controlPort } }));
    const healthCheck = { ...OFTEN, intervalSecs: 30 };
    const server = `127.0.0.1:${relay.port}`;
    const member = await join(harness, edge, { group, localPort: service.port, healthCheck }, { server });
    await untilHealthy(edge, group, 1);
    const feed = await edge.feed(harness, 'http', group);
    const { tunnelId } = member.tunnel;
    // Only the client's side of each connection is reset. The edge does not notice.
    for (const connection of relay.connections) connection.lose();
    await eventually(() => expect(member.statuses.map(({ type }) => type)).toContain('reconnected'));
    expect(await edge.group(group)).toMatchObject({ member_count: 1, healthy_count: 1 });
    expect(member.tunnel.tunnelId).toBe(tunnelId);
    expect(await namesAt(member.tunnel, 3)).toEqual(Array(3).fill(service.name));
    expect([feed.ended, feed.events]).toEqual([false, []]);
    expect(await edge.healthEvents(tunnelId)).toHaveLength(1);
  });

  it(row('Contract', 4), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const service = await startNamed(harness);
    const echo = await startNamedTcp(harness, 'db');
    const member = await join(harness, edge, { group: web, localPort: service.port });
    const tunnel = await member.client.open({ protocol: 'tcp', group: db, groupKey: 'key', localPort: echo.port });
    const port = tunnel.assignedPort ?? 0;
    expect(await greetingAt(port, 2)).toBe('db');
    await member.client.close();
    expect((await askHttp(endpointOf(member.tunnel.publicUrl))).status).toBe(404);
    await eventually(async () => expect(await fateOf(port)).toBe('ECONNREFUSED'));
  });

  it(row('Contract', 34), async ({ harness }) => {
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const removed = await join(harness, edge, { group, localPort: one.port });
    const stays = await join(harness, edge, { group, localPort: two.port });
    const path = `/api/tunnels/${removed.tunnel.tunnelId}`;
    expect((await edge.stack.api(path, { method: 'DELETE', token: edge.token('bob') })).status).toBe(404);
    expect((await edge.stack.api(path, { method: 'DELETE', token: edge.token('alice') })).status).toBe(204);
    const { members } = await edge.group(group);
    expect(members.map(({ tunnel_id }) => tunnel_id)).toEqual([stays.tunnel.tunnelId]);
    await eventually(() => expect(removed.tunnel.state).toBe('closed'));
    expect(removed.statuses.find(({ type }) => type === 'tunnel-error')).toMatchObject({ final: true });
    expect(await namesAt(stays.tunnel, 5)).toEqual(Array(5).fill(two.name));
  });
});
