import { expect, it } from 'vitest';
import { monthWithRoom } from './month-with-room.ts';

const END = Date.UTC(2031, 0, 1);

it.each([
  ['in the middle of a month', [END - 86_400_000], 1],
  ['when there is just enough', [END - 60_000], 1],
  ['in the last seconds of a month', [END - 59_999, END - 1, END], 3],
])('monthWithRoom lets a test start %s', async (_when, times, looks) => {
  let looked = 0;
  await monthWithRoom(60_000, () => {
    looked += 1;
    return times[looked - 1] ?? END;
  });
  expect(looked).toBe(looks);
});
