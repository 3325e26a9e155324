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

it('a read returns the usage since the last read, and nothing without a change', () => {
  const { counters, read } = set();
  expect(read()).toEqual([]);
  counters.addBytes(10);
  counters.addRequest();
  expect(read()).toEqual([[1, 10]]);
  expect(read()).toEqual([]);
  counters.addBytes(5);
  expect(read()).toEqual([[0, 5]]);
});

it('a request that may fail over to another member is not reported yet', () => {
  const { counters, read } = set();
  for (let n = 0; n < 3; n += 1) counters.addRequest();
  counters.addPendingFailover();
  counters.addPendingFailover();
  expect(read()).toEqual([[1, 0]]);
  // One pending request was served by this member, the other by another member.
  counters.endPendingFailover();
  counters.endPendingFailover();
  counters.takeBackRequest();
  expect(read()).toEqual([[1, 0]]);
  expect(read()).toEqual([]);
});

it('a reported request that failed over is subtracted from the next usage', () => {
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

it('watching a tunnel twice does not reset its usage', () => {
  const { meter, counters, read } = set();
  counters.addBytes(10);
  read();
  meter.watch('tun_1', counters);
  expect(read()).toEqual([]);
});

it('an ended tunnel is metered until its last connection has closed', async () => {
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

it('usage counted before the first read is reported', () => {
  const { meter } = set();
  meter.read();
  meter.watch('tun_2', countersOf(2, 7));
  expect(meter.read()).toMatchObject([{ tunnel_id: 'tun_2', requests: 2, bytes: 7 }]);
});

it('a read visits only tunnels with changed counters', () => {
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

it('reported usage adds up to the counters over 5000 random events', async () => {
  const { clock, meter } = set();
  const random = seededRandom(7);
  const below = (bound: number): number => Math.floor(random() * bound);
  // Each tunnel has a connection that outlives the tunnel.
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
