// Axes of a chart of days: round values for the grid lines, and the days to label. Pure functions.

/** Maximum number of a chart's grid lines above zero. */
const LINES_MAX = 4;

/**
 * Returns the values of the grid lines above zero, evenly spaced, up to at least `most`. The values are integers, because requests and
 * bytes have no fractions.
 */
export const linesOf = (most: number): number[] => {
  const step = Math.max(1, roundStep(most / LINES_MAX));
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count }, (_, index) => step * (index + 1));
};

/** Returns the smallest value of the form 1, 2 or 5 times a power of ten that is at least `least`. */
const roundStep = (least: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return power * ([1, 2, 5].find((step) => power * step >= least) ?? 10);
};

/** Returns whether a day gets a label. At most `texts` days do, evenly spaced and including the last day. */
export const isWritten = (index: number, count: number, texts: number): boolean =>
  (count - 1 - index) % Math.ceil(count / texts) === 0;
