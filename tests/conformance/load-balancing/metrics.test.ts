// The group series of the metrics endpoint, as a scraper gets them.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fresh, GroupEdge, REGION } from './group-edge.fixture.ts';
import { distinct, join, namesAt, startNamed } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const MEMBERS = 'tunnel_group_members';
const DISPATCHES = 'tunnel_group_dispatches_total';
const FAILURES = 'tunnel_group_health_failures_total';

/** Returns the series of a group with all their labels. */
const seriesOf = async (name: string, group: string) =>
  (await edge.series(name)).filter(({ labels }) => labels['group'] === group);

const typeOf = async (name: string) => new RegExp(`^# TYPE ${name} (\\w+)$`, 'm').exec(await edge.metricsText())?.[1];

// The tests run one after the other, because some count values that concurrent tests would change.
describe('Metrics endpoint', () => {
  it(row('Metrics endpoint', 1), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const [one] = [
      await raw.join(memberRequest(group)),
      await raw.join(memberRequest(group)),
      await raw.join(memberRequest(group)),
    ];
    await raw.healthy(one);
    expect(await typeOf(MEMBERS)).toBe('gauge');
    const values = async () => (await seriesOf(MEMBERS, group)).map(({ labels, value }) => [labels, value] as const);
    const labels = (healthy: string) => ({ group, region: REGION, healthy });
    expect(await values()).toEqual(
      expect.arrayContaining([
        [labels('true'), 1],
        [labels('false'), 2],
      ]),
    );
    expect(await values()).toHaveLength(2);
    await raw.unhealthy(one);
    await raw.leave(one);
    expect(await values()).toEqual(
      expect.arrayContaining([
        [labels('true'), 0],
        [labels('false'), 2],
      ]),
    );
  });

  it(row('Metrics endpoint', 2), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel, client } = await join(harness, edge, { group, localPort: service.port });
    await join(harness, edge, { group, localPort: service.port });
    expect(await typeOf(DISPATCHES)).toBe('counter');
    expect(await seriesOf(DISPATCHES, group)).toEqual([{ labels: { group, region: REGION }, value: 0 }]);
    await namesAt(tunnel, 10);
    await eventually(async () => expect(await edge.metric(DISPATCHES, { group })).toBe(10));
    // Dispatches to a member that has left still count.
    await client.close();
    expect(await edge.metric(DISPATCHES, { group })).toBe(10);
  });

  it(row('Metrics endpoint', 3), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const tcp = await raw.join(memberRequest(group));
    const http = await raw.join(memberRequest(group, { health_check: { type: 'http', path: '/' } }));
    const { health_check: _, ...noProbe } = memberRequest(group);
    const none = await raw.join(noProbe);
    await raw.healthy(tcp);
    for (const member of [tcp, tcp, http, none, none, none]) await raw.unhealthy(member);
    expect(await typeOf(FAILURES)).toBe('counter');
    const values = (await seriesOf(FAILURES, group)).map(({ labels, value }) => ({ ...labels, value }));
    expect(values).toHaveLength(3);
    // Every frame counts, even if it did not change the health bit.
    expect(values).toEqual(
      expect.arrayContaining([
        { group, region: REGION, kind: 'tcp', value: 2 },
        { group, region: REGION, kind: 'http', value: 1 },
        { group, region: REGION, kind: 'none', value: 3 },
      ]),
    );
  });

  it(row('Metrics endpoint', 4), async ({ harness }) => {
    // Waits until the tunnels of earlier tests have closed.
    await eventually(async () => expect(await edge.stack.tunnels()).toEqual([]));
    const service = await startNamed(harness);
    const requests = async (): Promise<number> => {
      const series = await edge.series('tunnel_requests_total');
      return series.reduce((sum, { value }) => sum + value, 0);
    };
    const before = { http: await edge.metric('tunnel_active_tunnels_http'), requests: await requests() };
    const tcpBefore = (await edge.metric('tunnel_active_tunnels_tcp')) ?? 0;
    const group = fresh();
    const { tunnel } = await join(harness, edge, { group, localPort: service.port });
    await join(harness, edge, { group, localPort: service.port });
    const raw = await RawControl.enter(harness, edge);
    const db = fresh();
    for (let members = 0; members < 3; members += 1) await raw.join(memberRequest(db, { protocol: 'tcp' }));
    await namesAt(tunnel, 4);
    expect(await edge.metric('tunnel_active_tunnels_http')).toBe((before.http ?? 0) + 2);
    expect(await edge.metric('tunnel_active_tunnels_tcp')).toBe(tcpBefore + 3);
    await eventually(async () => expect(await requests()).toBe(before.requests + 4));
  });

  it(row('Contract', 32), async ({ harness }) => {
    const name = fresh();
    const raw = await RawControl.enter(harness, edge);
    const a = fresh('a');
    const b = fresh('b');
    const first = await raw.join(memberRequest(name, { subdomain: a }));
    const second = await raw.join(memberRequest(name, { subdomain: b, key: 'other' }));
    const labelled = async () =>
      (await edge.series(DISPATCHES)).map(({ labels }) => labels['group']).filter((label) => label?.startsWith(name));
    expect(distinct(await labelled())).toEqual([name, `${name}@${b}`]);
    // A group keeps its label until it ends, even after the other group of the same name has gone.
    await raw.unhealthy(first);
    await raw.unhealthy(second);
    await raw.leave(first);
    await raw.unhealthy(second);
    expect(await edge.metric(FAILURES, { group: `${name}@${b}` })).toBe(2);
    expect(await edge.metric(FAILURES, { group: name })).toBe(1);
    expect(await edge.metric(MEMBERS, { group: name, healthy: 'false' })).toBe(0);
    // The same group opens again before its series has expired, so the counter continues.
    const again = await raw.join(memberRequest(name, { subdomain: a }));
    await raw.unhealthy(again);
    expect(await edge.metric(FAILURES, { group: name })).toBe(2);
    expect((await edge.group(name)).total_health_failures).toBeLessThan(3);
  });
});
