// Stands in for fast-check in every test (vitest.config.ts resolves the import to this file), so that one variable sets how many cases a property
// tries: see randomCases(). TUNNEL_RANDOM_SECONDS stops a property after that time, for runs with many times the usual number of cases. A property
// that fails says so soon and in few words: the search for a smaller counterexample has a time limit, and the report a length.
import * as fc from 'fast-check';
import { randomCases } from '../packages/testkit/src/chance/random-cases.ts';

/** The number of cases of a property whose test names none: fast-check's default. */
const DEFAULT_CASES = 100;

/** For the search for a smaller counterexample, from the first failure on. Without a limit it took ten minutes for a list of 700 steps. */
const SHRINK_MS = 10_000;

/** Of a counterexample that is printed. */
const COUNTEREXAMPLE_CHARS = 4000;

/** Of the path from the case that failed to the counterexample, a number for each step. Instead of a longer one the case itself is named. */
const PATH_CHARS = 400;

const seconds = process.env['TUNNEL_RANDOM_SECONDS'];
const timeLimit = seconds === undefined ? {} : { interruptAfterTimeLimit: 1000 * Number(seconds) };

/** The time limit of fast-check would count the cases that hold, too, and end a slow property that is sound. */
const shrinkingInTime = <T>(property: fc.IRawProperty<T>): fc.IRawProperty<T> => {
  let untilMs = Number.POSITIVE_INFINITY;
  const isInTime = (): boolean => performance.now() < untilMs;
  const shrink: typeof property.shrink = (value) => {
    untilMs = Math.min(untilMs, performance.now() + SHRINK_MS);
    return isInTime() ? property.shrink(value).takeWhile(isInTime) : fc.Stream.nil();
  };
  return Object.assign(Object.create(property) as typeof property, { shrink });
};

const cut = (text: string): string =>
  text.length <= COUNTEREXAMPLE_CHARS
    ? text
    : `${text.slice(0, COUNTEREXAMPLE_CHARS)}… (${text.length} characters in all)`;

const report = <T>(details: fc.RunDetails<T>): void => {
  if (!details.failed) return;
  const path = details.counterexamplePath ?? null;
  const shown = {
    ...details,
    counterexamplePath: path !== null && path.length > PATH_CHARS ? path.slice(0, path.indexOf(':')) : path,
    counterexample: { [fc.toStringMethod]: () => cut(fc.stringify(details.counterexample)) },
  };
  const message = fc.defaultReportMessage(shown as unknown as fc.RunDetails<T>);
  throw new Error(message, { cause: details.errorInstance });
};

export const assert: typeof fc.assert = (property, parameters = {}) => {
  const numRuns = randomCases(parameters.numRuns ?? DEFAULT_CASES);
  // The overloads of fast-check's type have no signature for a property that may be synchronous or not.
  const asked = { reporter: report, ...parameters, numRuns, ...timeLimit };
  return fc.assert(shrinkingInTime(property as never) as never, asked as never) as never;
};

export * from 'fast-check';
export default { ...fc, assert };
