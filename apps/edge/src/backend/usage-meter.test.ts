import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { UsageMeter } from './usage-meter.ts';

const set = () => {
  const clock = new FakeClock();
  const meter = new UsageMeter({ clock, afterEndMs: 1000 });
  const counters = { requests: 0, bytes: 0, openConnections: 0, pendingFailover: 0 };
  meter.watch('tun_1', counters);
  const read = () => meter.read().map(({ requests, bytes }) => [requests, bytes]);
  return { clock, meter, counters, read };
};

it('tells the difference since the last time, and nothing when there is none', () => {
  const { counters, read } = set();
  expect(read()).toEqual([]);
  counters.bytes = 10;
  counters.requests = 1;
  expect(read()).toEqual([[1, 10]]);
  expect(read()).toEqual([]);
  counters.bytes = 15;
  expect(read()).toEqual([[0, 5]]);
});

it('waits with a request that another member may yet serve', () => {
  const { counters, read } = set();
  Object.assign(counters, { requests: 3, pendingFailover: 2 });
  expect(read()).toEqual([[1, 0]]);
  // One was served here, one went elsewhere.
  Object.assign(counters, { requests: 2, pendingFailover: 0 });
  expect(read()).toEqual([[1, 0]]);
  expect(read()).toEqual([]);
});

it('sets a request that went to another member off against the next one', () => {
  const { counters, read } = set();
  counters.requests = 2;
  expect(read()).toEqual([[2, 0]]);
  counters.requests = 1;
  expect(read()).toEqual([]);
  counters.requests = 3;
  expect(read()).toEqual([[1, 0]]);
});

it('does not begin anew when the same tunnel is opened twice', () => {
  const { meter, counters, read } = set();
  counters.bytes = 10;
  read();
  meter.watch('tun_1', counters);
  expect(read()).toEqual([]);
});

it('goes on for an ended tunnel until its last connection is over, and a while longer', async () => {
  const { clock, meter, counters, read } = set();
  counters.openConnections = 1;
  meter.ended('tun_1');
  await clock.advance(5000);
  counters.bytes = 10;
  expect(read()).toEqual([[0, 10]]);
  counters.bytes = 30;
  counters.openConnections = 0;
  expect(read()).toEqual([[0, 20]]);
  counters.bytes = 31;
  expect(read()).toEqual([]);
});
