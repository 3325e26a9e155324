// Number of cases in randomized tests. The module has no imports, because every randomized test loads it through the replacement for
// fast-check.

/**
 * Factor for the number of cases, from `TUNNEL_RANDOM_TIMES`: a third in `npm test`, 1 in `.ci/run` and by default, 25 in `npm run
 * test:random`.
 */
const TIMES = Number(process.env['TUNNEL_RANDOM_TIMES'] ?? 1);

/** Returns the number of cases for a test that requests `all` cases; at least 1. */
export const randomCases = (all: number, times = TIMES): number => Math.max(1, Math.round(all * times));
