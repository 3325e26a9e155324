// The table "Member health": the health bit of a member and its effect on dispatch, tested with real clients and real probes.
import { eventually, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { FrameTap } from './frame-tap.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { distinct, join, namesAt, OFTEN, startNamed, startNamedTcp, untilHealthy } from './members.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const memberOf = async (group: string, tunnelId: string) =>
  (await edge.group(group)).members.find(({ tunnel_id }) => tunnel_id === tunnelId);

describe.concurrent('Member health', () => {
  it(row('Member health', 1), async ({ harness }) => {
    const tap = await FrameTap.start(harness, edge);
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: service.port }, { server: tap.server });
    expect(await edge.group(group)).toMatchObject({ healthy_count: 1, unhealthy_count: 0 });
    // The local service stops: visitors get a 502 and the member stays healthy.
    await service.close();
    expect(distinct(await namesAt(tunnel, 5))).toEqual(['502']);
    expect(await memberOf(group, tunnel.tunnelId)).toMatchObject({ healthy: true, total_health_failures: 0 });
    expect([...tap.of('TunnelHealthy'), ...tap.of('TunnelUnhealthy')]).toEqual([]);
    expect(await edge.healthEvents(tunnel.tunnelId)).toEqual([]);
    expect(service.probes).toEqual([]);
  });

  it(row('Member health', 2), async ({ harness }) => {
    const group = fresh();
    // A service that accepts connections and never answers, so that the first probe keeps running.
    const silent = harness.use(await startTcpServer((socket) => void socket.resume()));
    const service = await startNamed(harness);
    const healthCheck = { ...OFTEN, timeoutSecs: 30 };
    const probed = await join(harness, edge, { group, localPort: silent.port, healthCheck });
    expect(await memberOf(group, probed.tunnel.tunnelId)).toMatchObject({ healthy: false, consecutive_failures: 0 });
    expect(await namesAt(probed.tunnel, 1)).toEqual(['502']);
    await join(harness, edge, { group, localPort: service.port });
    expect(distinct(await namesAt(probed.tunnel, 20))).toEqual([service.name]);
    // Only the probe has connected.
    expect(silent.totalConnections).toBe(1);
  });

  it(row('Member health', 3), async ({ harness }) => {
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    one.up = false;
    const { tunnel } = await join(harness, edge, { group, localPort: one.port, healthCheck: OFTEN });
    await join(harness, edge, { group, localPort: two.port });
    await eventually(() => expect(one.probes.length).toBeGreaterThan(0));
    expect(distinct(await namesAt(tunnel, 20))).toEqual([two.name]);
    one.up = true;
    await untilHealthy(edge, group, 2);
    expect(distinct(await namesAt(tunnel, 40))).toEqual([one.name, two.name].sort());
  });

  it(row('Member health', 4), async ({ harness }) => {
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const { tunnel } = await join(harness, edge, {
      group,
      localPort: one.port,
      healthCheck: { ...OFTEN, maxFailed: 3 },
    });
    await join(harness, edge, { group, localPort: two.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 2);
    one.up = false;
    await untilHealthy(edge, group, 1);
    expect(await memberOf(group, tunnel.tunnelId)).toMatchObject({
      healthy: false,
      consecutive_failures: 3,
      total_health_failures: 1,
    });
    expect((await edge.group(group)).total_health_failures).toBe(1);
    const before = one.served;
    expect(distinct(await namesAt(tunnel, 20))).toEqual([two.name]);
    expect(one.served).toBe(before);
  });

  it(row('Member health', 4, 'tcp'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamedTcp(harness, 'up');
    const healthCheck = { type: 'tcp', intervalSecs: 0.2, maxFailed: 2 } as const;
    const { tunnel } = await join(harness, edge, { protocol: 'tcp', group, localPort: service.port, healthCheck });
    await untilHealthy(edge, group, 1);
    await service.close();
    await untilHealthy(edge, group, 0);
    const [, down] = await edge.healthEvents(tunnel.tunnelId);
    expect(down).toMatchObject({ healthy: false, reason: expect.stringMatching(/refused/i) as string });
    await startNamedTcp(harness, 'up', service.port);
    await untilHealthy(edge, group, 1);
  });

  it(row('Member health', 5), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel, statuses } = await join(harness, edge, { group, localPort: service.port, healthCheck: OFTEN });
    for (let round = 1; round <= 2; round += 1) {
      await untilHealthy(edge, group, 1);
      service.up = false;
      await untilHealthy(edge, group, 0);
      expect(await memberOf(group, tunnel.tunnelId)).toMatchObject({ consecutive_failures: 2 });
      service.up = true;
    }
    await untilHealthy(edge, group, 1);
    expect(await memberOf(group, tunnel.tunnelId)).toMatchObject({
      healthy: true,
      consecutive_failures: 0,
      // The total of failures does not reset.
      total_health_failures: 2,
    });
    expect(await namesAt(tunnel, 3)).toEqual(Array(3).fill(service.name));
    const told = statuses.filter(({ type }) => type === 'health').map((event) => 'healthy' in event && event.healthy);
    expect(told).toEqual([true, false, true, false, true]);
  });

  it(row('Member health', 6), async ({ harness }) => {
    const tap = await FrameTap.start(harness, edge);
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(
      harness,
      edge,
      { group, localPort: service.port, healthCheck: OFTEN },
      { server: tap.server },
    );
    const probedAnother = async (times: number): Promise<void> => {
      const from = service.probes.length;
      await eventually(() => expect(service.probes.length).toBeGreaterThanOrEqual(from + times));
    };
    const reports = () => tap.sent.map(({ type }) => type).filter((type) => /^Tunnel(Un)?[Hh]ealthy$/.test(type));
    await probedAnother(4);
    expect(reports()).toEqual(['TunnelHealthy']);
    service.up = false;
    await untilHealthy(edge, group, 0);
    await probedAnother(4);
    expect(reports()).toEqual(['TunnelHealthy', 'TunnelUnhealthy']);
    service.up = true;
    await untilHealthy(edge, group, 1);
    await probedAnother(2);
    expect(reports()).toEqual(['TunnelHealthy', 'TunnelUnhealthy', 'TunnelHealthy']);
    expect(await edge.healthEvents(tunnel.tunnelId)).toHaveLength(3);
  });
});
