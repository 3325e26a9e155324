import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { LookupPace } from './lookup-pace.ts';

it('the lookup pace limits parallel lookups, lookups per second and the queue, and keeps their order', async () => {
  const clock = new FakeClock();
  const pace = new LookupPace({ atOnce: 4, perSecond: 3, waitingMax: 5 }, clock);
  const begun: number[] = [];
  const enter = (id: number): boolean => pace.enter(() => begun.push(id));
  expect([1, 2, 3, 4, 5, 6, 7, 8, 9].map(enter)).toEqual([true, true, true, true, true, true, true, true, false]);
  expect(begun).toEqual([1, 2, 3]);
  await clock.advance(999);
  expect(begun).toEqual([1, 2, 3]);
  await clock.advance(1);
  // There is a place for a fourth parallel lookup, but not for a fifth.
  expect(begun).toEqual([1, 2, 3, 4]);
  await clock.advance(5000);
  expect(begun).toEqual([1, 2, 3, 4]);
  pace.done();
  pace.done();
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  pace.close();
  pace.done();
  await clock.advance(5000);
  expect([begun.length, clock.pendingTimers]).toEqual([6, 0]);
});

it('the lookup pace never starts more lookups within any second than its limit', async () => {
  const clock = new FakeClock();
  const pace = new LookupPace({ atOnce: 100, perSecond: 20, waitingMax: 1000 }, clock);
  const times: number[] = [];
  const begin = (): void => {
    times.push(clock.monotonic());
    pace.done();
  };
  for (let round = 0; round < 30; round += 1) {
    for (let index = 0; index < 7; index += 1) pace.enter(begin);
    await clock.advance(130);
  }
  await clock.advance(20_000);
  expect(times).toHaveLength(210);
  for (let index = 20; index < times.length; index += 1) {
    expect((times[index] as number) - (times[index - 20] as number)).toBeGreaterThanOrEqual(1000);
  }
});

it('the lookup pace starts a lookup that found no room just before the second ended', async () => {
  /** A clock that advances a little on each read. */
  class MovingClock extends FakeClock {
    perLookMs = 0;
    #movedMs = 0;
    override monotonic(): number {
      this.#movedMs += this.perLookMs;
      return super.monotonic() + this.#movedMs;
    }
  }
  const clock = new MovingClock();
  const pace = new LookupPace({ atOnce: 4, perSecond: 1, waitingMax: 5 }, clock);
  const begun: number[] = [];
  const enter = (id: number): boolean =>
    pace.enter(() => {
      begun.push(id);
      pace.done();
    });
  enter(1);
  await clock.advance(999);
  clock.perLookMs = 0.75;
  enter(2);
  clock.perLookMs = 0;
  enter(3);
  await clock.advance(2000);
  expect([begun, clock.pendingTimers]).toEqual([[1, 2, 3], 0]);
});
