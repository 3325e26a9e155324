// fast-check, but each property is tried RANDOM_TIMES as often as its test says, or for as long as RANDOM_SECONDS lets it.
import * as fc from 'fast-check';

const TIMES = Number(process.env['RANDOM_TIMES']);
const LIMIT_MS = 1000 * Number(process.env['RANDOM_SECONDS']);
/** Its own, where a test says nothing. */
const USUAL_RUNS = 100;

export const assert: typeof fc.assert = (property, parameters = {}) => {
  const numRuns = (parameters.numRuns ?? USUAL_RUNS) * TIMES;
  // Its type has no word for what both kinds of properties give.
  return fc.assert(property as never, { ...parameters, numRuns, interruptAfterTimeLimit: LIMIT_MS } as never) as never;
};

export * from 'fast-check';
export default { ...fc, assert };
