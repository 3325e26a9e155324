// Groups, members and health, tested with real clients.
import { healthEvents } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { FrameTap } from './frame-tap.fixture.ts';
import { fresh, GroupEdge, sha256 } from './group-edge.fixture.ts';
import {
  distinct,
  greetingAt,
  join,
  namesAt,
  OFTEN,
  startNamed,
  startNamedTcp,
  untilHealthy,
} from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

describe.concurrent('Load-balancing concepts', () => {
  it(row('Load-balancing concepts', 1), async ({ harness }) => {
    const tap = await FrameTap.start(harness, edge);
    const group = fresh();
    const groupKey = 'the raw key, ключ';
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const first = await join(harness, edge, { group, groupKey, localPort: one.port }, { server: tap.server });
    const second = await join(harness, edge, { group, groupKey, localPort: two.port }, { server: tap.server });
    // Both members share a public URL.
    expect(first.tunnel.publicUrl).toBe(second.tunnel.publicUrl);
    expect(distinct(await namesAt(first.tunnel, 30))).toEqual([one.name, two.name].sort());
    // The edge learns only the hash of the group key.
    expect(tap.of('RegisterTunnel').map((frame) => frame['group_key_hash'])).toEqual(Array(2).fill(sha256(groupKey)));
    expect(tap.texts.join('\n')).not.toMatch(/the raw key|ключ/);
    expect((await edge.group(group)).key_hash_short).toBe(sha256(groupKey).slice(0, 8));
  });

  it(row('Load-balancing concepts', 1, 'tcp'), async ({ harness }) => {
    const group = fresh();
    const one = await startNamedTcp(harness, 'one');
    const two = await startNamedTcp(harness, 'two');
    const { tunnel } = await join(harness, edge, { protocol: 'tcp', group, localPort: one.port });
    const other = await join(harness, edge, { protocol: 'tcp', group, localPort: two.port });
    expect(other.tunnel.assignedPort).toBe(tunnel.assignedPort);
    const heard = new Set<string>();
    await eventually(async () => {
      heard.add(await greetingAt(tunnel.assignedPort ?? 0, 3));
      expect([...heard].sort()).toEqual(['one', 'two']);
    });
  });

  it(row('Load-balancing concepts', 2), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    await join(harness, edge, { group, localPort: service.port });
    expect(await edge.group(group)).toMatchObject({ member_count: 1, healthy_count: 1 });
    await join(harness, edge, { group, localPort: service.port });
    const { members, ...counts } = await edge.group(group);
    expect(counts).toMatchObject({ member_count: 2, healthy_count: 2, unhealthy_count: 0 });
    expect(distinct(members.map(({ session_id }) => session_id))).toHaveLength(2);
  });

  it(row('Load-balancing concepts', 3), async ({ harness }) => {
    const group = fresh();
    const good = await startNamed(harness);
    const bad = await startNamed(harness);
    bad.up = false;
    const { tunnel } = await join(harness, edge, { group, localPort: good.port, healthCheck: OFTEN });
    await join(harness, edge, { group, localPort: bad.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 1);
    expect(distinct(await namesAt(tunnel, 30))).toEqual([good.name]);
    expect(bad.served).toBe(0);
    bad.up = true;
    await untilHealthy(edge, group, 2);
    expect(distinct(await namesAt(tunnel, 30))).toEqual([good.name, bad.name].sort());
  });

  it(row('Load-balancing concepts', 4), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const subdomain = fresh();
    const group = fresh('first');
    const raw = await RawControl.enter(harness, edge);
    const health_check = { type: 'tcp' as const, alert_webhook: receiver.url() };
    const first = await raw.join(memberRequest(group, { subdomain, health_check }));
    const second = await raw.join(memberRequest(fresh('second'), { subdomain, health_check }));
    // The group keeps the first joiner's name and the hash that authorizes joins, even after the first joiner has left.
    await raw.leave(first);
    expect(await edge.group(group)).toMatchObject({ label: subdomain, key_hash_short: sha256('key').slice(0, 8) });
    expect((await raw.refusal(memberRequest(group, { subdomain, key: 'other' }))).message).toBe(
      'group key does not match',
    );
    // The flag zero_healthy_alerted is set by the first transition, so the second report in a row sends no alert.
    await raw.healthy(second);
    await raw.unhealthy(second);
    await raw.unhealthy(second);
    await raw.healthy(second);
    await raw.unhealthy(second);
    await receiver.until(group, 2);
    await raw.settle();
    expect(receiver.of(group)).toHaveLength(2);
  });

  it(row('Load-balancing concepts', 5), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: service.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 1);
    service.up = false;
    await untilHealthy(edge, group, 0);
    const events = await edge.healthEvents(tunnel.tunnelId);
    expect(events.map((event) => Object.keys(event).sort())).toEqual(Array(2).fill(['at', 'healthy', 'reason']));
    expect(healthEvents.parse(events).map(({ healthy }) => healthy)).toEqual([true, false]);
    expect(events[1]?.reason).toMatch(/503/);
    expect(Date.parse(events[0]?.at ?? '')).toBeLessThan(Date.parse(events[1]?.at ?? ''));
  });
});
