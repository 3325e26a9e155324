// The limits of load balancing. The limits of alerts and event streams are tested with their sections.
import { eventually, FastClock, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, itWith } from '../../system/in-process.fixture.ts';
import { FrameTap } from './frame-tap.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { join, startNamed } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

/** A clock fast enough for a probe every 10 s, but slow enough that a busy machine's stall does not count as a timeout. */
const clock = new FastClock(5);
const it = itWith({ clock });
const shared = new Harness({ clock });
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

describe.concurrent('Limits', () => {
  it(row('Limits', 1), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(fresh()));
    for (let streak = 1; streak <= 30; streak += 1) {
      await raw.healthy(member);
      await raw.unhealthy(member, `streak ${streak}`);
    }
    const events = await edge.healthEvents(member.tunnel_id);
    expect(events).toHaveLength(50);
    // The last 25 streaks remain, oldest first.
    const reasons = events.filter(({ healthy }) => !healthy).map(({ reason }) => reason);
    expect(reasons).toEqual(Array.from({ length: 25 }, (_, index) => `streak ${index + 6}`));
  });

  it(row('Limits', 2, 'interval_secs 10'), async ({ harness }) => {
    const service = await startNamed(harness);
    const healthCheck = { type: 'http', path: '/healthz' } as const;
    await join(harness, edge, { group: fresh(), localPort: service.port, healthCheck });
    await eventually(() => expect(service.probes).toHaveLength(2), { timeoutMs: 40_000 });
    const [first = 0, second = 0] = service.probes;
    // The first probe starts at once, the next after 10 s plus jitter.
    expect(second - first).toBeGreaterThan(8000);
    expect(second - first).toBeLessThan(25_000);
  });

  it(row('Limits', 2, 'timeout_secs 3'), async ({ harness }) => {
    const lasted: number[] = [];
    const silent = harness.use(
      await startTcpServer((socket) => {
        const since = clock.monotonic();
        socket.on('close', () => lasted.push(clock.monotonic() - since)).on('end', () => socket.end());
        socket.resume();
      }),
    );
    const healthCheck = { type: 'http', path: '/', intervalSecs: 60 } as const;
    await join(harness, edge, { group: fresh(), localPort: silent.port, healthCheck });
    await eventually(() => expect(lasted).toHaveLength(1), { timeoutMs: 30_000 });
    expect(lasted[0]).toBeGreaterThan(2000);
    expect(lasted[0]).toBeLessThan(9000);
  });

  it(row('Limits', 2, 'max_failed 3'), async ({ harness }) => {
    const tap = await FrameTap.start(harness, edge);
    const service = await startNamed(harness);
    service.up = false;
    const healthCheck = { type: 'http', path: '/healthz', intervalSecs: 1 } as const;
    await join(harness, edge, { group: fresh(), localPort: service.port, healthCheck }, { server: tap.server });
    await eventually(() => expect(tap.of('TunnelUnhealthy')).toHaveLength(1));
    expect(tap.of('TunnelUnhealthy')[0]).toMatchObject({ consecutive_failures: 3 });
    // A fourth probe may have run by now.
    expect(service.probes.length).toBeGreaterThanOrEqual(3);
  });
});
