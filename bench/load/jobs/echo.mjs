// Small round trips on persistent connections, one in flight per connection.
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../../lib/statistics.mjs';
import { SmallTalk } from '../small-talk.mjs';

/** @param {{ connections: number, warmUpMs: number, measureMs: number }} parameters */
export async function echo(address, { connections, warmUpMs, measureMs }, ready) {
  const talks = Array.from({ length: connections }, (_, index) => new SmallTalk(address, index));
  await talkFor(talks, warmUpMs);
  await ready();
  return talkFor(talks, measureMs);
}

/** Returns the round trips and their times over all connections. */
async function talkFor(talks, durationMs) {
  for (const talk of talks) talk.times = [];
  const begin = performance.now();
  const stopped = delay(durationMs).then(() => {
    for (const talk of talks) talk.stop();
  });
  await Promise.all([stopped, ...talks.map((talk) => talk.talk())]);
  const seconds = (performance.now() - begin) / 1000;
  const times = Float64Array.from(talks.flatMap((talk) => talk.times)).sort();
  return {
    seconds,
    roundTrips: times.length,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}
