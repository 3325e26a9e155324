// A number in a query, or a refusal that names the field, its bounds and what was given.
import { Fault } from '@tunnel/errors';

export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** Quoted in an answer: a line, not a page. */
const SHOWN_CHARACTERS = 40;

export const boundedInteger = (field: string, given: string | undefined, bounds: IntegerBounds): number => {
  if (given === undefined) return bounds.default;
  const value = /^-?\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
  if (value >= bounds.min && value <= bounds.max) return value;
  const reason = `${field} must be an integer from ${bounds.min} to ${bounds.max}, got '${given.slice(0, SHOWN_CHARACTERS)}'`;
  throw new Fault('API_BAD_REQUEST', { reason });
};
