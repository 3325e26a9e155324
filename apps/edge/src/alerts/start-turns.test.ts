import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { StartTurns } from './start-turns.ts';

it('a few begin in each turn of the event loop, in order, and none is forgotten', async () => {
  const turns = new StartTurns();
  const begun: number[] = [];
  const count = EDGE_LIMITS.ALERT_STARTS_PER_TURN * 2 + 1;
  const begin = (n: number) => void turns.next().then(() => begun.push(n));
  for (let n = 0; n < count; n++) begin(n);
  expect(begun).toEqual([]);
  await nextTurn();
  expect(begun).toHaveLength(EDGE_LIMITS.ALERT_STARTS_PER_TURN);
  await nextTurn();
  expect(begun).toHaveLength(EDGE_LIMITS.ALERT_STARTS_PER_TURN * 2);
  await nextTurn();
  begin(count);
  await nextTurn();
  expect(begun).toEqual(Array.from({ length: count + 1 }, (_, n) => n));
});
