// Contract rows about health reports, and about alerts for groups without a healthy member.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fresh, GroupEdge, sha256 } from './group-edge.fixture.ts';
import { join, namesAt, OFTEN, startNamed } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
let operator: WebhookReceiver;
beforeAll(async () => {
  operator = await WebhookReceiver.start(shared);
  edge = await GroupEdge.start(shared, { lines: `alert_webhook_url = "${operator.url('/operator')}"` });
});
afterAll(() => shared.close());

/** The registration of a member without a probe, which is always healthy. */
const plain = (group: string, alert_webhook?: string) => ({
  protocol: 'http' as const,
  group,
  group_key_hash: sha256('key'),
  ...(alert_webhook === undefined ? {} : { health_check: { alert_webhook } }),
});

/** Returns the alerts of a group. Alerts are sent in order, so when a later alert has arrived, all earlier alerts have arrived too. */
const alertsOf = async (harness: Harness, group: string) => {
  const raw = await RawControl.enter(harness, edge);
  const last = fresh('last');
  const member = await raw.join(memberRequest(last));
  await raw.healthy(member);
  await raw.unhealthy(member);
  await operator.until(last, 1);
  return operator.of(group).map(({ body }) => body);
};

describe.concurrent('Contract', () => {
  it(row('Contract', 11), async ({ harness }) => {
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { localPort: service.port, healthCheck: OFTEN });
    // Visitors are served before the first probe, while the probe fails, and afterwards.
    expect(await namesAt(tunnel, 1)).toEqual([service.name]);
    service.up = false;
    await eventually(async () => expect(await edge.healthEvents(tunnel.tunnelId, 'alice')).toHaveLength(2));
    expect(await namesAt(tunnel, 3)).toEqual(Array(3).fill(service.name));
    service.up = true;
    await eventually(async () => expect(await edge.healthEvents(tunnel.tunnelId)).toHaveLength(3));
    expect((await edge.healthEvents(tunnel.tunnelId)).map(({ healthy }) => healthy)).toEqual([true, false, true]);
    expect((await edge.groups()).flatMap(({ members }) => members.map(({ tunnel_id }) => tunnel_id))).not.toContain(
      tunnel.tunnelId,
    );
  });

  it(row('Contract', 12), async ({ harness }) => {
    const group = fresh();
    const receiver = await WebhookReceiver.start(harness);
    const service = await startNamed(harness);
    const healthCheck = { alertWebhook: receiver.url() };
    const { tunnel } = await join(harness, edge, { group, localPort: service.port, healthCheck });
    const [member] = (await edge.group(group)).members;
    expect(member).toMatchObject({ healthy: true, has_alert_webhook: true });
    expect(member).not.toHaveProperty('health_check_kind');
    expect(service.probes).toEqual([]);
    // The member leaves and only an unhealthy member remains: the alert goes to the URL of the member that left.
    const raw = await RawControl.enter(harness, edge);
    await raw.join(memberRequest(group));
    await tunnel.close();
    expect(await receiver.until(group, 1)).toMatchObject([{ body: { member_count: 1 } }]);
  });

  it(row('Contract', 16), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(group));
    const none = await raw.join(plain(group));
    const feed = await edge.feed(harness, 'http', group);
    const failures = (kind: string) => edge.metric('tunnel_group_health_failures_total', { group, kind });
    // A failure of a member that was never healthy is counted, but produces no event.
    await raw.unhealthy(member, 'refused', 3);
    expect((await edge.group(group)).members[0]).toMatchObject({ consecutive_failures: 3, total_health_failures: 1 });
    expect(await edge.healthEvents(member.tunnel_id)).toEqual([]);
    // Repeated failures are counted as well.
    await raw.unhealthy(member, 'refused', 6);
    expect((await edge.group(group)).members[0]).toMatchObject({ consecutive_failures: 6, total_health_failures: 2 });
    expect(await failures('tcp')).toBe(2);
    // A failure of a member without a probe counts with the kind none, and the member stays healthy.
    await raw.unhealthy(none, 'whatever', 1);
    await raw.healthy(none);
    expect((await edge.group(group)).members[1]).toMatchObject({ healthy: true, total_health_failures: 1 });
    expect((await edge.group(group)).members[1]).not.toHaveProperty('health_check_kind');
    expect(await failures('none')).toBe(1);
    expect(await edge.healthEvents(none.tunnel_id)).toEqual([]);
    expect((await edge.group(group)).total_health_failures).toBe(3);
    await raw.healthy(member);
    await feed.until(1);
    expect(feed.changes).toEqual([[member.tunnel_id, true]]);
    expect(await alertsOf(harness, group)).toEqual([]);
  });

  it(row('Contract', 17), async ({ harness }) => {
    const group = fresh();
    const hers = await WebhookReceiver.start(harness);
    const his = await WebhookReceiver.start(harness);
    const withHook = (url: string) => memberRequest(group, { health_check: { type: 'tcp', alert_webhook: url } });
    const alice = await RawControl.enter(harness, edge, 'alice');
    const bob = await RawControl.enter(harness, edge, 'bob');
    const last = await alice.join(withHook(hers.url()));
    await bob.join(withHook(his.url()));
    await bob.join(withHook(his.url()));
    await alice.healthy(last);
    await alice.leave(last);
    for (const receiver of [hers, his, operator]) {
      const [alert] = await receiver.until(group, 1);
      expect(alert?.body).toMatchObject({ event: 'group_zero_healthy', member_count: 2 });
      expect(alert?.body['at']).toMatch(/\+00:00$/);
    }
    // The same alerts are sent if the member's client is lost.
    const again = await alice.join(withHook(hers.url()));
    await alice.healthy(again);
    await alice.cut();
    for (const receiver of [hers, his, operator]) await receiver.until(group, 2);
    expect([hers.of(group).length, his.of(group).length]).toEqual([2, 2]);
  });

  it(row('Contract', 18, 'the group is gone, or was never healthy'), async ({ harness }) => {
    const gone = fresh('gone');
    const lost = fresh('lost');
    const never = fresh('never');
    const raw = await RawControl.enter(harness, edge);
    const other = await RawControl.enter(harness, edge);
    const only = await raw.join(memberRequest(gone));
    await raw.healthy(only);
    await raw.leave(only);
    // A lost client takes all members of a group with it, and one member leaves before the other.
    const both = [await other.join(memberRequest(lost)), await other.join(memberRequest(lost))];
    for (const member of both) await other.healthy(member);
    await other.cut();
    await eventually(async () => expect(await edge.findGroup(lost)).toBeUndefined());
    const one = await raw.join(memberRequest(never));
    const two = await raw.join(memberRequest(never));
    await raw.unhealthy(one);
    await raw.unhealthy(two);
    await raw.leave(one);
    expect([...(await alertsOf(harness, gone)), ...operator.of(lost), ...operator.of(never)]).toEqual([]);
  });

  it(row('Contract', 18, 'the edge stops'), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const lines = `alert_webhook_url = "${receiver.url()}"`;
    const stopping = await GroupEdge.start(harness, { lines, server: 'drain_secs = 1' });
    const group = fresh();
    const one = await RawControl.enter(harness, stopping);
    const two = await RawControl.enter(harness, stopping);
    await one.healthy(await one.join(memberRequest(group)));
    await two.join(memberRequest(group));
    stopping.stack.program.signal('SIGTERM');
    await stopping.stack.program.waitForExit();
    expect(receiver.connections).toBe(0);
  });

  it(row('Contract', 19), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(group));
    await raw.healthy(member);
    await raw.unhealthy(member);
    await operator.until(group, 1);
    const helper = await raw.join(plain(group));
    expect((await edge.group(group)).healthy_count).toBe(1);
    await raw.leave(helper);
    await operator.until(group, 2);
    expect(await alertsOf(harness, group)).toHaveLength(2);
  });
});
