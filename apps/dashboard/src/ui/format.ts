// Formats numbers and times for display. Pure functions: the current time is an argument.

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** Formats a number of bytes in decimal units, because traffic is priced per 10^9 bytes. */
export const bytesText = (bytes: number): string => {
  let size = Math.max(0, bytes);
  let unit = 0;
  // From 999.95 on, the next unit is used, because rounding would show 1000.
  while (size >= (unit === 0 ? 1000 : 999.95) && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 99.95 ? 0 : 1;
  return `${size.toFixed(digits)} ${UNITS[unit]}`;
};

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export const countText = (count: number): string => WHOLE.format(count);

/** Formats a count, with compact notation from 100,000: 12,345 is unchanged, and 1,234,567 becomes 1.2M. */
export const shortCountText = (count: number): string => (Math.abs(count) < 100_000 ? WHOLE : SHORT).format(count);

const DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });

export const moneyText = (cents: number): string => DOLLARS.format(cents / 100);

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Formats a duration with its two largest units, as in "2 h 5 min". */
export const durationText = (ms: number): string => {
  const left = Math.max(0, ms);
  if (left < MINUTE) return `${Math.floor(left / SECOND)} s`;
  if (left < HOUR) return `${Math.floor(left / MINUTE)} min ${Math.floor((left % MINUTE) / SECOND)} s`;
  if (left < DAY) return `${Math.floor(left / HOUR)} h ${Math.floor((left % HOUR) / MINUTE)} min`;
  return `${Math.floor(left / DAY)} d ${Math.floor((left % DAY) / HOUR)} h`;
};

/** Formats the duration of a request, in ms or s. */
export const latencyText = (ms: number): string => {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
};

/** Formats a past time relative to now, as in "3 min ago". After seven days, returns the date. */
export const agoText = (at: number, now: number): string => {
  const past = now - at;
  if (past < 10 * SECOND) return 'just now';
  if (past < MINUTE) return `${Math.floor(past / SECOND)} s ago`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < DAY) return `${Math.floor(past / HOUR)} h ago`;
  if (past < 7 * DAY) return `${Math.floor(past / DAY)} d ago`;
  return dateText(at);
};

const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const MOMENT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const UTC_MOMENT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });
const UTC_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

export const dateText = (at: number): string => DATE.format(at);

/** Formats a date and time in the browser's time zone. */
export const momentText = (at: number): string => MOMENT.format(at);

/** Formats a date and time in UTC, as in "16 Nov 2026, 08:14:05 UTC", so that users can compare the time with logs. */
export const utcMomentText = (at: number): string => `${UTC_MOMENT.format(at)} UTC`;

/** Formats a UTC day for a chart, as in "31 Jan". */
export const utcDayText = (at: number): string => UTC_DAY.format(at);

const UTC_MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const UTC_DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** Formats the UTC date of a time, as in "1 December 2030". */
export const utcDateText = (at: number): string => UTC_DATE.format(at);

/** Formats the month in UTC, as in "November 2030". `now` is in ms since the epoch. */
export const monthText = (now: number): string => UTC_MONTH.format(now);

/** Formats the first day of the next month in UTC, on which invoices are issued, as in "1 December 2030". */
export const nextMonthText = (now: number): string => {
  const date = new Date(now);
  return utcDateText(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1));
};

export const percentText = (share: number): string => {
  const percent = Number.isFinite(share) ? share * 100 : 0;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
};

/** Formats a count with its noun, as in "1 member" and "2 members". */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;
