// Replaces fast-check in every test (vitest.config.ts resolves the import to this file), so that a single variable sets the number of
// cases per property: see randomCases(). TUNNEL_RANDOM_SECONDS stops a property after that time, for runs with many times the usual
// number of cases. A failing property reports quickly and briefly: the search for a smaller counterexample has a time limit, and the
// report has a maximum length.
import * as fc from 'fast-check';
import { randomCases } from '../packages/testkit/src/chance/random-cases.ts';

/** Number of cases of a property without an explicit number: fast-check's default. */
const DEFAULT_CASES = 100;

/**
 * Maximum time for the search for a smaller counterexample, from the first failure on. Without a limit, the search took ten minutes for a
 * list of 700 steps.
 */
const SHRINK_MS = 10_000;

/** Maximum length of a printed counterexample. */
const COUNTEREXAMPLE_CHARS = 4000;

/**
 * Maximum length of the printed path from the failing case to the counterexample, with a number per step. Instead of a longer path, only
 * the failing case is printed.
 */
const PATH_CHARS = 400;

const seconds = process.env['TUNNEL_RANDOM_SECONDS'];
const timeLimit = seconds === undefined ? {} : { interruptAfterTimeLimit: 1000 * Number(seconds) };

/**
 * Limits only the time for shrinking. fast-check's time limit would also count passing cases, and would end a slow but correct property.
 */
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
  // The casts are needed, because the overloads of fast-check have no signature for a property that may be synchronous or asynchronous.
  const asked = { reporter: report, ...parameters, numRuns, ...timeLimit };
  return fc.assert(shrinkingInTime(property as never) as never, asked as never) as never;
};

export * from 'fast-check';
export default { ...fc, assert };
