// The axes of a chart of days: round values that its lines stand for, and the days that are written below it. Pure.

/** At most this many lines above zero. */
const LINES_MAX = 4;

/** Values of the lines above zero, evenly spaced, up to at least `most`. Whole numbers: requests and bytes have no parts. */
export const linesOf = (most: number): number[] => {
  const step = Math.max(1, roundStep(most / LINES_MAX));
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count }, (_, index) => step * (index + 1));
};

/** The smallest of 1, 2 and 5 times a power of ten that is not below `least`. */
const roundStep = (least: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * ([1, 2, 5].find((step) => power * step >= least) ?? 10);
};

/** Whether a day is written: at most `texts` of them, evenly spaced, and the last day is one of them. */
export const isWritten = (index: number, count: number, texts: number): boolean =>
  (count - 1 - index) % Math.ceil(count / texts) === 0;
