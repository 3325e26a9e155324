// Days as usage counts them: from midnight to midnight in UTC, written YYYY-MM-DD.

const DAY_MS = 86_400_000;

/** `at`: milliseconds since the epoch. */
export const utcDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Today and the days before it, `count` of them, oldest first. */
export const lastUtcDays = (now: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => utcDay(now - (count - 1 - index) * DAY_MS));
