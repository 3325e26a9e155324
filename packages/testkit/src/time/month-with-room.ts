// For tests in real time that compare bills within one calendar month. A test of this kind must not start shortly before the end of the
// month.
import { eventually } from './eventually.ts';

/** Additional time for the wait, because the system clock may be adjusted in the meantime. */
const SPARE_MS = 10_000;

/** Waits for the start of the next month (UTC) if the current month ends in less than `ms`. */
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
