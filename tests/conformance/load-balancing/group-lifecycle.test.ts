// The table "Group lifecycle": how groups begin, grow, go down, recover and end.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fateOf } from '../../system/visitor.fixture.ts';
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

describe.concurrent('Group lifecycle', () => {
  it(row('Group lifecycle', 1), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    expect(await edge.findGroup(web)).toBeUndefined();
    const raw = await RawControl.enter(harness, edge);
    await raw.join(memberRequest(web));
    expect(await edge.group(web)).toMatchObject({ protocol: 'http', label: web, member_count: 1 });
    const { assigned_port } = await raw.join(tcp(db));
    const { from, to } = edge.stack.tcpPorts;
    expect(assigned_port).toBeGreaterThanOrEqual(from);
    expect(assigned_port).toBeLessThanOrEqual(to);
    expect(await edge.group(db)).toMatchObject({ protocol: 'tcp', label: String(assigned_port), member_count: 1 });
  });

  it(row('Group lifecycle', 2), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const one = await RawControl.enter(harness, edge);
    const two = await RawControl.enter(harness, edge, 'bob');
    const firsts = [await one.join(memberRequest(web)), await one.join(tcp(db))];
    const seconds = [await two.join(memberRequest(web)), await two.join(tcp(db))];
    expect(seconds.map(({ public_url }) => public_url)).toEqual(firsts.map(({ public_url }) => public_url));
    expect(seconds[1]?.assigned_port).toBe(firsts[1]?.assigned_port);
    await two.settle();
    expect([one.of('Registered').length, two.of('Registered').length]).toEqual([1, 0]);
    for (const name of [web, db]) expect((await edge.group(name)).member_count).toBe(2);
  });

  it(row('Group lifecycle', 3), async ({ harness }) => {
    const group = fresh();
    const service = await startNamedTcp(harness, 'hello');
    const spec = { protocol: 'tcp', group, localPort: service.port } as const;
    const one = await join(harness, edge, spec);
    const two = await join(harness, edge, spec);
    const port = one.tunnel.assignedPort ?? 0;
    await one.client.close();
    expect(await edge.group(group)).toMatchObject({ member_count: 1 });
    expect(await greetingAt(port, 5)).toBe('hello');
    const before = await edge.group(group);
    expect(before.total_dispatches).toBe(1);
    await two.client.close();
    expect(await edge.findGroup(group)).toBeUndefined();
    await eventually(async () => expect(await fateOf(port)).toBe('ECONNREFUSED'));
    // The port is released to every account. A later group starts with a new port and with counters at zero.
    const raw = await RawControl.enter(harness, edge);
    await eventually(() => raw.join({ protocol: 'tcp', remote_port: port }));
    const { tunnel } = await join(harness, edge, spec);
    expect(tunnel.assignedPort).not.toBe(port);
    expect(await edge.group(group)).toMatchObject({ member_count: 1, total_dispatches: 0, total_health_failures: 0 });
  });

  it(row('Group lifecycle', 3, 'http'), async ({ harness }) => {
    const subdomain = fresh();
    const service = await startNamed(harness);
    const first = await join(harness, edge, { subdomain, group: 'before', localPort: service.port });
    await first.client.close();
    expect((await askHttp(endpointOf(first.tunnel.publicUrl))).status).toBe(404);
    // The name is released, even for a group with a different key.
    const spec = { subdomain, group: fresh('after'), groupKey: 'other', localPort: service.port };
    await join(harness, edge, spec);
    expect((await edge.group(spec.group)).label).toBe(subdomain);
  });

  it(row('Group lifecycle', 4), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const healthCheck = { ...OFTEN, alertWebhook: receiver.url() };
    const { tunnel } = await join(harness, edge, { group, localPort: one.port, healthCheck });
    await join(harness, edge, { group, localPort: two.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 2);
    one.up = false;
    await untilHealthy(edge, group, 1);
    expect(await namesAt(tunnel, 3)).toEqual(Array(3).fill(two.name));
    expect(receiver.of(group)).toEqual([]);
    two.up = false;
    await untilHealthy(edge, group, 0);
    expect(await namesAt(tunnel, 3)).toEqual(['502', '502', '502']);
    expect(await receiver.until(group, 1)).toMatchObject([{ body: { event: 'group_zero_healthy', member_count: 2 } }]);
    expect((await edge.group(group)).member_count).toBe(2);
  });

  it(row('Group lifecycle', 5), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const health_check = { type: 'http', path: '/', alert_webhook: receiver.url() } as const;
    const one = await raw.join(memberRequest(group, { health_check }));
    const two = await raw.join(memberRequest(group));
    await raw.healthy(one);
    await raw.unhealthy(one);
    await receiver.until(group, 1);
    // Further failures of the member that became unhealthy and of a member that was never healthy.
    await raw.unhealthy(one);
    await raw.unhealthy(two);
    expect(await edge.group(group)).toMatchObject({ healthy_count: 0, total_health_failures: 3 });
    await expectNoMore(receiver, group, 1, harness);
  });

  it(row('Group lifecycle', 6), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const health_check = { type: 'tcp', alert_webhook: receiver.url() } as const;
    const one = await raw.join(memberRequest(group, { health_check }));
    const two = await raw.join(memberRequest(group, { health_check }));
    // The recovery of any member counts, not only of the first.
    for (const [round, member] of [one, two, one].entries()) {
      await raw.healthy(member);
      await raw.unhealthy(member);
      await receiver.until(group, round + 1);
    }
    await expectNoMore(receiver, group, 3, harness);
  });

  it(row('Group lifecycle', 7), async ({ harness }) => {
    const web = fresh();
    const db = fresh();
    const clients = await Promise.all(Array.from({ length: 10 }, () => RawControl.enter(harness, edge)));
    const answers = await Promise.all(
      clients.flatMap((client) => [client.join(memberRequest(web)), client.join(tcp(db))]),
    );
    const ports = answers.flatMap(({ assigned_port }) => assigned_port ?? []);
    expect(new Set(ports).size).toBe(1);
    expect(clients.flatMap((client) => client.of('Registered'))).toHaveLength(1);
    for (const name of [web, db]) {
      const groups = (await edge.groups()).filter((group) => group.name === name);
      expect(groups.map(({ member_count }) => member_count)).toEqual([10]);
    }
    expect(new Set(answers.map(({ tunnel_id }) => tunnel_id)).size).toBe(20);
  });

  it(row('Group lifecycle', 7, 'with different keys, and a solo tunnel among them'), async ({ harness }) => {
    const subdomain = fresh();
    const clients = await Promise.all(Array.from({ length: 9 }, () => RawControl.enter(harness, edge)));
    const answers = await Promise.all(
      clients.map((client, nth) =>
        client.ask(nth === 4 ? { subdomain } : memberRequest('any', { subdomain, key: `key ${nth % 3}` })),
      ),
    );
    // A single group key, or the solo tunnel, gets the name. All other clients get an error.
    const winners = answers.flatMap((answer, nth) => (answer.type === 'TunnelRegistered' ? [nth] : []));
    expect(new Set(winners.map((nth) => (nth === 4 ? 'solo' : nth % 3))).size).toBe(1);
    const told = answers.flatMap((answer) => (answer.type === 'TunnelError' ? [answer.message] : []));
    expect(told).toHaveLength(9 - winners.length);
    for (const message of told) expect(message).toMatch(/^group key does not match$|is already in use$/);
    expect((await edge.stack.tunnels()).filter(({ label }) => label === subdomain)).toHaveLength(winners.length);
  });

  it(row('Group lifecycle', 7, 'a join that races the last leave'), async ({ harness }) => {
    const group = fresh();
    const leaver = await RawControl.enter(harness, edge);
    const joiner = await RawControl.enter(harness, edge);
    for (let round = 0; round < 20; round += 1) {
      const last = await leaver.join(tcp(group));
      const [, joined] = await Promise.all([leaver.leave(last), joiner.join(tcp(group))]);
      // The joining member ends up in the old group or in a new one, and is never lost.
      const { label, members } = await edge.group(group);
      expect([label, members.map(({ tunnel_id }) => tunnel_id)]).toEqual([
        String(joined.assigned_port),
        [joined.tunnel_id],
      ]);
      await joiner.leave(joined);
    }
    expect(await edge.findGroup(group)).toBeUndefined();
  });
});

/**
 * Checks that a group got no further alerts. Alerts arrive in order, so after a later alert of a different group no earlier alert can be
 * missing.
 */
const expectNoMore = async (
  receiver: WebhookReceiver,
  group: string,
  count: number,
  harness: Harness,
): Promise<void> => {
  const raw = await RawControl.enter(harness, edge);
  const last = fresh('last');
  const member = await raw.join(memberRequest(last, { health_check: { type: 'tcp', alert_webhook: receiver.url() } }));
  await raw.healthy(member);
  await raw.unhealthy(member);
  await receiver.until(last, 1);
  expect(receiver.of(group)).toHaveLength(count);
};
