// For tests in real time that hold bills of one calendar month against each other: they do not begin shortly before its end.
import { eventually } from './eventually.ts';

/** More than the wait itself: the clock of a machine is put right now and then. */
const SPARE_MS = 10_000;

/** Waits for the next month, in UTC, when this one is over in less than that. */
export const monthWithRoom = async (ms: number, now: () => number = Date.now): Promise<void> => {
  const check = (): void => {
    if (leftOfMonth(now()) < ms) throw new Error('the month is about to end');
  };
  await eventually(check, { timeoutMs: ms + SPARE_MS, intervalMs: 100 });
};

const leftOfMonth = (at: number): number => {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) - at;
};
