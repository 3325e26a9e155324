// Months as bills know them: from the first of one to the first of the next, at midnight in UTC, written YYYY-MM.

/** `at`: milliseconds since the epoch. */
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

export const monthStart = (month: string): number => Date.parse(`${month}-01T00:00:00.000Z`);

/** The first moment that is not in it any more. */
export const monthEnd = (month: string): number => {
  const start = new Date(monthStart(month));
  return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
};

/**
 * The month that a record of use is billed in: the one that it happened in, as long as that one is not closed. One that comes
 * later than `lateMs` after its month's end, or from a clock that is ahead by a month, counts in the month of now.
 */
export const billingMonth = (at: number, now: number, lateMs: number): string => {
  const [month, present] = [monthOf(at), monthOf(now)];
  const isOpen = month <= present && now < monthEnd(month) + lateMs;
  return isOpen ? month : present;
};
