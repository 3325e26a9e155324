// A whole number in a query: described as one in the document, refused with its name, its bounds and what was given.
import { z } from '@hono/zod-openapi';
import { shownValue } from './shown-value.ts';

export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  /** Absent: any; what is larger than a number can tell exactly is as good as the largest. */
  readonly max?: number;
}

export const boundedInteger = (field: string, bounds: IntegerBounds, description: string) =>
  z
    // Whatever it is, a repeated parameter too: the refusal is ours.
    .unknown()
    .optional()
    .transform((given, context) => {
      const value = readInteger(given, bounds);
      if (value !== null) return value;
      context.addIssue({ code: 'custom', message: refusalOf(field, given, bounds) });
      return z.NEVER;
    })
    .openapi({
      type: 'integer',
      minimum: bounds.min,
      ...(bounds.max === undefined ? {} : { maximum: bounds.max }),
      default: bounds.default,
      description,
      param: { required: false },
    });

const readInteger = (given: unknown, { default: whenAbsent, min, max }: IntegerBounds): number | null => {
  if (given === undefined) return whenAbsent;
  const value = typeof given === 'string' && /^-?\d+$/.test(given) ? Number(given) : Number.NaN;
  if (!(value >= min)) return null;
  if (max === undefined) return Math.min(value, Number.MAX_SAFE_INTEGER);
  return value <= max ? value : null;
};

const refusalOf = (field: string, given: unknown, { min, max }: IntegerBounds): string => {
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  return `${field} must be an integer ${range}, got '${shownValue(given)}'`;
};
