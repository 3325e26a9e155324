// How many cases a random test tries. This file imports nothing, because the stand-in for fast-check imports it in every random test.

/** `TUNNEL_RANDOM_TIMES`: a third in `npm test`, 1 in `.ci/run` and where nothing is set, 25 in `npm run test:random`. */
const TIMES = Number(process.env['TUNNEL_RANDOM_TIMES'] ?? 1);

/** The number of cases to try of a test that asks for `all`, at least one. */
export const randomCases = (all: number, times = TIMES): number => Math.max(1, Math.round(all * times));
