// Statistics over the rounds of a run.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns median and range. Returns null without values, so that an absent figure stays absent. */
export function spread(values) {
  const known = values.filter((value) => Number.isFinite(value));
  if (known.length === 0) return null;
  return { median: median(known), min: Math.min(...known), max: Math.max(...known) };
}

/** Returns a percentile of `sorted`, which is in ascending order. Uses the nearest rank, so that the result is a measured value. */
export function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
