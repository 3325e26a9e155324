import { FakeClock, seededRandom } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { countersOf } from './tunnel-counters.fixture.ts';
import { TunnelCounters } from './tunnel-counters.ts';
import { UsageMeter } from './usage-meter.ts';

const set = () => {
  const clock = new FakeClock();
  const meter = new UsageMeter({ clock, afterEndMs: 1000 });
  const counters = new TunnelCounters();
  meter.watch('tun_1', counters);
  const read = () => meter.read().map(({ requests, bytes }) => [requests, bytes]);
  return { clock, meter, counters, read };
};

it('tells the difference since the last time, and nothing when there is none', () => {
  const { counters, read } = set();
  expect(read()).toEqual([]);
  counters.addBytes(10);
  counters.addRequest();
  expect(read()).toEqual([[1, 10]]);
  expect(read()).toEqual([]);
  counters.addBytes(5);
  expect(read()).toEqual([[0, 5]]);
});

it('waits with a request that another member may yet serve', () => {
  const { counters, read } = set();
  for (let n = 0; n < 3; n += 1) counters.addRequest();
  counters.addPendingFailover();
  counters.addPendingFailover();
  expect(read()).toEqual([[1, 0]]);
  // One was served here, one went elsewhere.
  counters.endPendingFailover();
  counters.endPendingFailover();
  counters.takeBackRequest();
  expect(read()).toEqual([[1, 0]]);
  expect(read()).toEqual([]);
});

it('sets a request that went to another member off against the next one', () => {
  const { counters, read } = set();
  counters.addRequest();
  counters.addRequest();
  expect(read()).toEqual([[2, 0]]);
  counters.takeBackRequest();
  expect(read()).toEqual([]);
  counters.addRequest();
  counters.addRequest();
  expect(read()).toEqual([[1, 0]]);
});

it('does not begin anew when the same tunnel is opened twice', () => {
  const { meter, counters, read } = set();
  counters.addBytes(10);
  read();
  meter.watch('tun_1', counters);
  expect(read()).toEqual([]);
});

it('goes on for an ended tunnel until its last connection is over, and a while longer', async () => {
  const { clock, meter, counters, read } = set();
  counters.openConnections = 1;
  meter.ended('tun_1');
  await clock.advance(5000);
  counters.addBytes(10);
  expect(read()).toEqual([[0, 10]]);
  counters.addBytes(20);
  counters.openConnections = 0;
  expect(read()).toEqual([[0, 20]]);
  counters.addBytes(1);
  expect(read()).toEqual([]);
});

it('tells what was counted before anyone looked', () => {
  const { meter } = set();
  meter.read();
  meter.watch('tun_2', countersOf(2, 7));
  expect(meter.read()).toMatchObject([{ tunnel_id: 'tun_2', requests: 2, bytes: 7 }]);
});

it('looks at those alone that have changed', () => {
  const { meter, counters, read } = set();
  for (let n = 2; n < 1000; n += 1) meter.watch(`tun_${n}`, new TunnelCounters());
  expect(meter.changed).toBe(999);
  expect(read()).toEqual([]);
  expect(meter.changed).toBe(0);
  counters.addBytes(1);
  counters.addBytes(1);
  counters.openConnections += 1;
  expect(meter.changed).toBe(1);
  expect(read()).toEqual([[0, 2]]);
  expect(meter.changed).toBe(0);
});

it('adds up to what was counted, whatever happens in between', async () => {
  const { clock, meter } = set();
  const random = seededRandom(7);
  const below = (bound: number): number => Math.floor(random() * bound);
  // Each has a connection that outlives it.
  const all = Array.from({ length: 20 }, () => countersOf(0, 0, 1));
  const told = new Map<string, { requests: number; bytes: number }>();
  const read = (): void => {
    for (const { tunnel_id, requests, bytes } of meter.read()) {
      const sum = told.get(tunnel_id) ?? { requests: 0, bytes: 0 };
      told.set(tunnel_id, { requests: sum.requests + requests, bytes: sum.bytes + bytes });
    }
  };
  for (const [n, counters] of all.entries()) meter.watch(`tun_x${n}`, counters);
  const events: ((counters: TunnelCounters) => void)[] = [
    (counters) => counters.addBytes(below(70_000)),
    (counters) => counters.addRequest(),
    (counters) => {
      counters.addRequest();
      counters.addPendingFailover();
    },
    (counters) => counters.pendingFailover > 0 && counters.endPendingFailover(),
    (counters) => {
      if (counters.pendingFailover === 0) return;
      counters.endPendingFailover();
      counters.takeBackRequest();
    },
  ];
  for (let step = 0; step < 5000; step += 1) {
    const at = below(all.length);
    const counters = all[at];
    if (counters !== undefined) events[below(events.length)]?.(counters);
    if (step % 400 === 399) meter.ended(`tun_x${at}`);
    if (below(10) === 0) read();
    if (below(10) === 0) await clock.advance(10);
  }
  for (const counters of all) while (counters.pendingFailover > 0) counters.endPendingFailover();
  read();
  const counted = all.map(({ requests, bytes }) => ({ requests, bytes }));
  expect(all.map((_, n) => told.get(`tun_x${n}`))).toEqual(counted);
});
