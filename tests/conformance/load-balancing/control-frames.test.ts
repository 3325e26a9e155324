// The control frames that concern groups, tested with a client that is a bare WebSocket.
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const tcp = (group: string) => memberRequest(group, { protocol: 'tcp' });

describe.concurrent('Control-plane frames', () => {
  it(row('Control-plane frames', 1), async ({ harness }) => {
    const group = fresh();
    const one = await RawControl.enter(harness, edge);
    const two = await RawControl.enter(harness, edge);
    const first = await one.join(tcp(group));
    const bound = await one.heard('Registered');
    expect(bound).toEqual({ type: 'Registered', tunnel_id: first.tunnel_id, assigned_port: first.assigned_port });
    // Later members of any client, solo tunnels and groups with a subdomain get no Registered frame.
    await two.join(tcp(group));
    await one.join(tcp(group));
    await one.join({ protocol: 'tcp' });
    await one.join(memberRequest(fresh()));
    await Promise.all([one.settle(), two.settle()]);
    expect([one.of('Registered').length, two.of('Registered').length]).toEqual([1, 0]);
  });

  it(row('Control-plane frames', 2), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(tcp(group));
    expect((await edge.group(group)).members).toMatchObject([{ healthy: false }]);
    await raw.healthy(member);
    expect((await edge.group(group)).members).toMatchObject([{ healthy: true, consecutive_failures: 0 }]);
    await raw.unhealthy(member, 'gone', 7);
    await raw.healthy(member);
    expect((await edge.group(group)).members).toMatchObject([{ healthy: true, consecutive_failures: 0 }]);
    // Reports about a member of a different client or about an unknown tunnel are ignored, and do not end the session.
    const stranger = await RawControl.enter(harness, edge, 'bob');
    await stranger.unhealthy(member);
    await stranger.unhealthy({ tunnel_id: 'tun_nobody' });
    expect((await edge.group(group)).members).toMatchObject([{ healthy: true }]);
  });

  it(row('Control-plane frames', 3), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(tcp(group));
    await raw.healthy(member);
    await raw.unhealthy(member, 'connection refused', 3);
    expect((await edge.group(group)).members).toMatchObject([
      { healthy: false, consecutive_failures: 3, total_health_failures: 1 },
    ]);
    expect(await edge.healthEvents(member.tunnel_id)).toMatchObject([
      { healthy: true },
      { healthy: false, reason: 'connection refused' },
    ]);
    await raw.settle();
    expect(raw.of('Error')).toEqual([]);
  });
});
