// The event stream of a group: its events, the notice to a slow reader, and the ping.
import { type GroupSummary, groupEvent, lagged } from '@tunnel/contract';
import { eventually, FastClock } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, itWith } from '../../system/in-process.fixture.ts';
import { EventFeed } from './event-feed.fixture.ts';
import { fresh, GroupEdge, REGION } from './group-edge.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { startRoomyEdge } from './roomy-edge.fixture.ts';
import { row } from './rows.fixture.ts';

const KEEP_ALIVE_MS = 30_000;

const clock = new FastClock(10);
const it = itWith({ clock });
const shared = new Harness({ clock });
let edge: GroupEdge;
/** A stream without events. It is opened first, because the wait for its ping takes longer than the other tests. */
let quiet: EventFeed;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
  const raw = await RawControl.enter(shared, edge);
  const { label } = await raw.join(memberRequest(fresh('quiet')));
  quiet = await edge.feed(shared, 'http', label);
});
afterAll(() => shared.close());

/** Returns the time from the opening of the stream to the ping. */
const pingAfterMs = (): Promise<number> =>
  eventually(
    () => {
      const ping = quiet.comments.find(({ at }) => at - quiet.openedAt > 1000);
      if (ping === undefined) throw new Error('no ping yet');
      return ping.at - quiet.openedAt;
    },
    { timeoutMs: KEEP_ALIVE_MS },
  );

describe.concurrent('Server-Sent Events', () => {
  it(row('Server-Sent Events', 1), async ({ harness }) => {
    const group = fresh();
    const raw = await RawControl.enter(harness, edge);
    const one = await raw.join(memberRequest(group));
    const two = await raw.join(memberRequest(group));
    const feeds = [await edge.feed(harness, 'http', group), await edge.feed(harness, 'http', group, 'alice')];
    for (const member of [one, one, two]) await raw.healthy(member);
    await raw.unhealthy(one, 'connection refused');
    for (const feed of feeds) {
      await feed.until(3);
      expect(feed.changes).toEqual([
        [one.tunnel_id, true],
        [two.tunnel_id, true],
        [one.tunnel_id, false],
      ]);
      expect(feed.groupEvents[2]?.reason).toBe('connection refused');
    }
  });

  it(row('Server-Sent Events', 2), async ({ harness }) => {
    const group = fresh();
    const roomy = await startRoomyEdge(harness);
    const raw = await RawControl.enter(harness, roomy);
    const member = await raw.join(memberRequest(group));
    const feed = await EventFeed.open(harness, `${roomy.apiUrl}/api/groups/http/${group}/events`, roomy.token('admin'));
    // The longest possible reason in wide characters, so that few events fill the sockets and the queue.
    const reason = '€'.repeat(1000);
    const missed = () =>
      feed.events
        .filter(({ event }) => event === 'lagged')
        .reduce((sum, { data }) => sum + lagged.parse(data).missed, 0);
    let changes = 0;
    // Socket buffers differ between machines, so the reader pauses for longer and longer until it has missed events.
    for (let flips = 2000; missed() === 0; flips *= 2) {
      feed.pause();
      for (let flip = 0; flip < flips; flip += 1) {
        raw.send({ type: 'TunnelHealthy', tunnel_id: member.tunnel_id });
        raw.send({ type: 'TunnelUnhealthy', tunnel_id: member.tunnel_id, reason, consecutive_failures: 3 });
        changes += 2;
        if (flip % 500 === 0) await raw.settle();
      }
      await raw.settle();
      feed.resume();
      // Every change is either delivered or counted as missed.
      await eventually(() => expect(missed() + feed.groupEvents.length).toBe(changes), { timeoutMs: 40_000 });
    }
    // The reader gets new events after the notice.
    expect(await roomy.json<GroupSummary[]>('/api/groups')).toMatchObject([{ name: group, healthy_count: 0 }]);
    await raw.healthy(member);
    await eventually(() => expect(feed.groupEvents.at(-1)).toMatchObject({ healthy: true, healthy_count: 1 }));
  });

  it(row('Server-Sent Events', 3), async () => {
    const after = await pingAfterMs();
    expect(after).toBeGreaterThan(KEEP_ALIVE_MS - 1000);
    expect(after).toBeLessThan(KEEP_ALIVE_MS + 15_000);
    expect(quiet.ended).toBe(false);
    expect(quiet.events).toEqual([]);
  });

  it(row('Limits', 4), async () => {
    expect(Math.abs((await pingAfterMs()) - KEEP_ALIVE_MS)).toBeLessThan(15_000);
  });

  it(row('Contract', 31), async ({ harness }) => {
    const group = fresh();
    const alice = await RawControl.enter(harness, edge, 'alice');
    const bob = await RawControl.enter(harness, edge, 'bob');
    const hers = await alice.join(memberRequest(group));
    const his = await bob.join(memberRequest(group));
    const all = await edge.feed(harness, 'http', group);
    const own = await edge.feed(harness, 'http', group, 'alice-2');
    const before = clock.now();
    await alice.healthy(hers);
    await bob.healthy(his);
    await alice.unhealthy(hers, 'status 503');
    const [, , last] = await all.until(3);
    expect(groupEvent.strict().parse(last)).toEqual({
      protocol: 'http',
      label: group,
      group_name: group,
      region_id: REGION,
      tunnel_id: hers.tunnel_id,
      healthy: false,
      reason: 'status 503',
      // The counts are those after the change.
      healthy_count: 1,
      member_count: 2,
      at: last?.at,
    });
    expect(Date.parse(last?.at ?? '')).toBeGreaterThanOrEqual(before);
    const ids = all.events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain(undefined);
    await own.until(2);
    // Alice's last member leaves, so her stream ends because no events remain that she may see.
    await alice.leave(hers);
    await eventually(() => expect(own.ended).toBe(true));
    expect(all.ended).toBe(false);
    await bob.leave(his);
    await eventually(() => expect(all.ended).toBe(true));
  });
});
