// Schemas for query parameters: documented with their real type, and rejected with the name of the parameter, the allowed values and the
// given value.
import { z } from '@hono/zod-openapi';
import { Fault } from '@tunnel/errors';

export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  /** Maximum value. Without a maximum, values beyond the safe integers count as the largest safe integer. */
  readonly max?: number;
}

/** Maximum length of a value quoted in an error message. */
const SHOWN_CHARACTERS = 40;

/** Matches integers of 16 or more digits, which a JavaScript number may not represent exactly. */
const TOO_LONG = /^-?\d{16}/;

/** Parses an integer given as text. Throws an API_BAD_REQUEST fault if the value is invalid. */
export const boundedInteger = (field: string, given: string | undefined, bounds: IntegerBounds): number => {
  const value = TOO_LONG.test(given ?? '') ? null : readInteger(given, bounds);
  if (value === null) throw new Fault('API_BAD_REQUEST', { reason: integerRefusal(field, given, bounds) });
  return value;
};

/** Schema for an integer in the query of a route. */
export const integerParameter = (field: string, bounds: IntegerBounds, description: string) =>
  z
    // Accept any value here, even of a repeated parameter, so that an invalid value gets the error message of this schema.
    .unknown()
    .optional()
    .transform((given, context) => {
      const value = readInteger(given, bounds);
      if (value !== null) return value;
      context.addIssue({ code: 'custom', message: integerRefusal(field, given, bounds) });
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

const integerRefusal = (field: string, given: unknown, { min, max }: IntegerBounds): string => {
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  return `${field} must be an integer ${range}, got '${shown(given)}'`;
};

/** Schema for an optional query parameter with a fixed set of values. */
export const choiceParameter = <const Choice extends string>(
  field: string,
  choices: readonly Choice[],
  description: string,
) =>
  z
    .unknown()
    .optional()
    .transform((given, context): Choice | undefined => {
      if (given === undefined) return undefined;
      const choice = choices.find((each) => each === given);
      if (choice !== undefined) return choice;
      context.addIssue({
        code: 'custom',
        message: `${field} must be one of ${choices.join(', ')}, got '${shown(given)}'`,
      });
      return z.NEVER;
    })
    .openapi({ type: 'string', enum: [...choices], description, param: { required: false } });

/**
 * Schema for an optional query parameter with a cursor from an earlier response. Only the code that created the cursor can fully validate
 * it.
 */
export const cursorParameter = (field: string, maxLength: number, description: string) =>
  z
    .unknown()
    .optional()
    .transform((given, context): string | undefined => {
      if (given === undefined) return undefined;
      if (typeof given === 'string' && given !== '' && given.length <= maxLength) return given;
      context.addIssue({ code: 'custom', message: `${field} must be the next_cursor of an earlier response` });
      return z.NEVER;
    })
    .openapi({ type: 'string', minLength: 1, maxLength, description, param: { required: false } });

const shown = (given: unknown): string =>
  (Array.isArray(given) ? given.join(', ') : String(given)).slice(0, SHOWN_CHARACTERS);

/** Returns the operationId of a route in an OpenAPI document, such as `get_api_tunnels`. */
export const operationIdOf = (method: string, path: string): string =>
  [method, ...path.split(/[^A-Za-z]+/).filter((word) => word !== '')].join('_');
