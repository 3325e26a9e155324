import { expect, it } from 'vitest';
import { FakeClock } from './fake-clock.ts';
import { FreezingClock } from './freezing-clock.ts';

it('a frozen clock holds timers back, and runs overdue timers when it continues', async () => {
  const time = new FakeClock();
  const clock = new FreezingClock(time);
  const ran: string[] = [];
  clock.setTimeout(() => ran.push('before'), 5);
  clock.setInterval(() => ran.push('tick'), 10);
  clock.setTimeout(() => ran.push('held'), 12);
  const cancelled = clock.setTimeout(() => ran.push('cancelled'), 13);
  await time.advance(10);
  expect(ran.splice(0)).toEqual(['before', 'tick']);
  clock.freeze(true);
  await time.advance(10);
  cancelled.cancel();
  expect([ran, clock.monotonic()]).toEqual([[], time.monotonic()]);
  clock.freeze(false);
  expect(ran.splice(0)).toEqual(['held']);
  await time.advance(10);
  expect(ran).toEqual(['tick']);
});
