import { setImmediate as nextTurn } from 'node:timers/promises';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { KeyCheckQueue } from './key-check-queue.ts';

const setUp = (perSecond: number, waitingMax: number) => {
  const clock = new FakeClock();
  const queue = new KeyCheckQueue({ clock, perSecond, waitingMax });
  const entered: { readonly id: number; readonly at: number }[] = [];
  const refused: number[] = [];
  const come = (id: number): void =>
    void Promise.resolve(queue.turn()).then((isIn) =>
      isIn ? entered.push({ id, at: clock.monotonic() }) : refused.push(id),
    );
  return { clock, queue, entered, refused, come };
};

it('key checks start in order of arrival, with at most the allowed number in any second', async () => {
  const { clock, entered, refused, come } = setUp(20, 1000);
  let id = 0;
  // Bursts and trickles of key checks: number of checks, and the pause after them in milliseconds.
  for (const [count, pauseMs] of [
    [5, 300],
    [50, 990],
    [1, 10],
    [30, 400],
    [0, 5000],
    [25, 1],
  ] as const) {
    for (let n = 0; n < count; n += 1) come(id++);
    await clock.advance(pauseMs);
  }
  await clock.advance(10_000);
  await nextTurn();
  expect(refused).toEqual([]);
  expect(entered.map((each) => each.id)).toEqual(Array.from({ length: id }, (_, at) => at));
  for (const { at } of entered) {
    const within = entered.filter((other) => other.at >= at && other.at < at + 1000);
    expect(within.length).toBeLessThanOrEqual(20);
  }
  expect(clock.pendingTimers).toBe(0);
});

it('key checks start at once while there is room, and checks beyond the queue are refused', async () => {
  const { clock, queue, entered, refused, come } = setUp(2, 3);
  for (let id = 0; id < 7; id += 1) come(id);
  await nextTurn();
  expect(entered.map(({ id }) => id)).toEqual([0, 1]);
  expect([queue.waiting, refused]).toEqual([3, [5, 6]]);
  await clock.advance(1000);
  await nextTurn();
  expect(entered.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
});
