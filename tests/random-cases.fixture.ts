// Stands in for fast-check in every test (vitest.config.ts resolves the import to this file), so that one variable sets how many cases a property
// tries: see randomCases(). TUNNEL_RANDOM_SECONDS stops a property after that time, for runs with many times the usual number of cases.
import * as fc from 'fast-check';
import { randomCases } from '../packages/testkit/src/chance/random-cases.ts';

/** The number of cases of a property whose test names none: fast-check's default. */
const DEFAULT_CASES = 100;

const seconds = process.env['TUNNEL_RANDOM_SECONDS'];
const timeLimit = seconds === undefined ? {} : { interruptAfterTimeLimit: 1000 * Number(seconds) };

export const assert: typeof fc.assert = (property, parameters = {}) => {
  const numRuns = randomCases(parameters.numRuns ?? DEFAULT_CASES);
  // The overloads of fast-check's type have no signature for a property that may be synchronous or not.
  return fc.assert(property as never, { ...parameters, numRuns, ...timeLimit } as never) as never;
};

export * from 'fast-check';
export default { ...fc, assert };
